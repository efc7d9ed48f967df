"""Packs a folder as a wheel (PEP 427): its files, METADATA, WHEEL and RECORD.

Usage: pack_wheel.py FOLDER TARGET VERSION

The same files give the same bytes. The tag is that of the interpreter and of the C library here.
"""

import base64
import hashlib
import os
import platform
import sys
import zipfile

METADATA = """\
Metadata-Version: 2.1
Name: eddy-runtime
Version: {version}
Summary: Dataflow graphs with control flow, planned once and run many times
Requires-Python: >=3.{minor},<3.{next}
Requires-Dist: numpy>=1.24
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: eddy tools/wheel
Root-Is-Purelib: false
Tag: {tag}
"""


def files_of(folder):
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                yield os.path.relpath(path, folder), file.read()


def main():
    folder, target, version = sys.argv[1:]
    minor = sys.version_info[1]
    libc = platform.libc_ver()[1].replace(".", "_")
    tag = f"cp3{minor}-cp3{minor}-manylinux_{libc}_{platform.machine()}"
    info = f"eddy_runtime-{version}.dist-info"
    files = sorted(files_of(folder))
    metadata = METADATA.format(version=version, minor=minor, next=minor + 1)
    files.append((f"{info}/METADATA", metadata.encode()))
    files.append((f"{info}/WHEEL", WHEEL.format(tag=tag).encode()))
    record = []
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    record.append(f"{info}/RECORD,,\n")
    files.append((f"{info}/RECORD", "".join(record).encode()))
    path = os.path.join(target, f"eddy_runtime-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    main()
