"""program_client.py URL WHAT: a client of the server; exits with 1 where an answer is wrong.

pages      asks for each page and for a run
run        runs what never ends; the answer has to be 503, or the connection's end
running    waits until a run is in flight
closed     waits until no connection is accepted
"""

import json
import sys
import time
import urllib.error
import urllib.request


def fetch(url, body=None):
    try:
        with urllib.request.urlopen(url, data=body) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def expect(what, found, wanted):
    if found != wanted:
        sys.exit("%s: expected %r, but got %r" % (what, wanted, found))


def ask_for_pages(url):
    expect("health", fetch(url + "/healthz"), (200, "ok\n"))
    inputs = {"a": [[1, 2], [3, 4]], "b": {"shape": [2, 2], "data": [10, 20, 30, 40]}}
    code, text = fetch(url + "/v1/run", json.dumps({"inputs": inputs}).encode())
    expect("run", code, 200)
    expect("outputs", json.loads(text)["outputs"],
           {"y": {"type": "float", "shape": [2, 2], "data": [11, 22, 33, 44]}})
    code, text = fetch(url + "/v1/run", b"{")
    expect("bad run", (code, list(json.loads(text))), (400, ["error"]))
    code, text = fetch(url + "/v1/model")
    expect("model", [value["name"] for value in json.loads(text)["inputs"]], ["a", "b"])
    code, text = fetch(url + "/metrics")
    expect("metrics", (code, "eddy_run_duration_seconds_count 1\n" in text), (200, True))


def run_endless(url):
    try:
        code, text = fetch(url + "/v1/run", b'{"inputs": {"n": 0.5}}')
    except OSError:
        return
    expect("endless run", code, 503)


def wait_for_run(url):
    while "eddy_runs_in_flight 1\n" not in fetch(url + "/metrics")[1]:
        time.sleep(0.001)


def wait_for_close(url):
    try:
        while True:
            fetch(url + "/healthz")
            time.sleep(0.001)
    except OSError:
        return


{"pages": ask_for_pages, "run": run_endless, "running": wait_for_run,
 "closed": wait_for_close}[sys.argv[2]](sys.argv[1])
