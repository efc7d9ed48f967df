#!/bin/bash
# Claim: a bundle starts on a machine that has nothing but a base system and a driver: in a root of
# libc6, bash, coreutils and gzip, with the fake driver as the system's libcuda.so.1, `facts` finds a
# GPU that runs the kernels, `gpu_device_test` passes, a run with no driver says so, every library
# that the programs load but for the C library's lies in the bundle, and both speech models have room
# in its 60 MiB.
#
# EDDY_BARE_ROOT=DIR, with --test_env, takes a root that is there, as debootstrap --variant=minbase
# makes it; it is copied and stays as it is.
set -u
PATH="$PATH:/usr/sbin:/sbin"
skip() {  # as GoogleTest tells of it, so that it is counted
  echo "skipped: $*"
  local case='<testcase name="Starts" classname="GpuBareRoot" status="run" result="skipped">'
  [[ -z "${XML_OUTPUT_FILE:-}" ]] ||
    echo "<testsuites><testsuite>$case<skipped message=\"${*//[<&\"]/ }\"/></testcase></testsuite></testsuites>" \
      >"$XML_OUTPUT_FILE"
  exit 0
}
fail() {
  echo "$*"
  failures=$((failures + 1))
}
failures=0
folder="$(mktemp -d)"
trap 'rm -rf --one-file-system "$folder"' EXIT
root="$folder/root"

# Who is not root becomes it in a namespace; mounts end with it in either case.
spaces=(unshare --mount)
[[ "$(id -u)" == 0 ]] || spaces=(unshare --user --map-root-user --mount)
"${spaces[@]}" true 2>/dev/null || skip "no namespace of mounts: neither root nor user namespaces"
tools/gpu/gpu_report --part facts | grep -q '^kernels yes' || skip "built without a CUDA toolkit"

# The files of Debian's packages, without what they only document.
bare_root() {
  local packages
  packages="$(dpkg-query -W -f '${Package}:${Architecture}\n' libc6 bash base-files coreutils gzip libtinfo6 \
    libselinux1 libpcre2-8-0 libacl1 libattr1 libgmp10 2>/dev/null | sed 's/:all$//')"
  [[ "$packages" == *libc6* && "$packages" == *gzip* ]] || return 1
  mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,proc,dev,tmp,etc} &&
    ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root/" || return 1
  # shellcheck disable=SC2086
  dpkg -L $packages | grep -E '^/(usr/)?(bin|sbin|lib|lib64)/' | sort -u | while read -r file; do
    [[ -d "$file" && ! -L "$file" || ! -e "$file" ]] || echo "${file#/}"
  done | tar -C / -cf - -T - | tar -C "$root" --keep-directory-symlink -xf -
  "${spaces[@]}" chroot "$root" /bin/bash -c 'gzip --version >/dev/null && [[ ! -e /usr/lib/x86_64-linux-gnu/libstdc++.so.6 ]]'
}
if [[ -n "${EDDY_BARE_ROOT:-}" ]]; then
  cp -a "$EDDY_BARE_ROOT" "$root" || skip "$EDDY_BARE_ROOT cannot be copied"
else
  command -v dpkg-query >/dev/null || skip "no dpkg to take a base system's files from"
  bare_root || skip "the installed packages do not give a root"
fi

# A checkout whose programs are built.
checkout="$folder/checkout"
mkdir -p "$checkout/tools/gpu" "$checkout/.build/default"
cp -L tools/gpu_bundle tools/lib.sh "$checkout/tools/"
cp -L tools/gpu/{*.py,*.md,sanitize,run,start,step,unpack} "$checkout/tools/gpu/"
touch "$checkout/WORKSPACE"
cp -L tools/gpu/gpu_report tests/runtime/cuda/gpu_device_test "$checkout/.build/default/"
sleep 0.1
touch "$checkout/.build/default/"{gpu_report,gpu_device_test}.stamp
unset EDDY_CONFIG
# Files as large as those of tools/demo, or a little larger, stand for the speech models.
mkdir -p "$folder/cache/eddy/models"
truncate -s 2400000 "$folder/cache/eddy/models/silero_vad-1.onnx"
truncate -s 8200000 "$folder/cache/eddy/models/moonshine_tiny_encoder-1.onnx"
truncate -s 20900000 "$folder/cache/eddy/models/moonshine_tiny_decoder-1.onnx"
said="$(XDG_CACHE_HOME="$folder/cache" "$checkout/tools/gpu_bundle" "$folder/bundle" 2>&1)" ||
  fail "no bundle: $said"
echo "$said"
bytes="$(du -sb "$folder/bundle" | cut -f1)"
((bytes <= 60 * 1024 * 1024)) || fail "a bundle of $bytes bytes"
[[ "$said" == *"in it: Silero"* && "$said" == *"in it: Moonshine tiny"* ]] ||
  fail "a speech model has no room in the bundle: $said"
mv "$folder/bundle" "$root/bundle"

# in_root COMMAND: by the bare root's shell, with what the kernel gives (the loader's $ORIGIN is read
# from /proc).
in_root() {
  ROOT="$root" "${spaces[@]}" bash -c \
    'mount --rbind /proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" &&
     exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/bin:/bin /bin/bash -c "$1"' sh "$1" 2>&1
}
in_root true >"$folder/said" || skip "cannot mount in a namespace: $(cat "$folder/said")"

said="$(in_root 'cd / && bundle/gpu_report --part facts')"
got=$?
[[ $got == 4 && "$said" == *"libcuda.so.1"* ]] || fail "without a driver: exit $got, $said"

libraries="$root/usr/lib/x86_64-linux-gnu"
mkdir -p "$libraries" && cp -L tests/runtime/cuda/libcuda.so.1 "$libraries/"
in_root 'ldconfig' >/dev/null
said="$(in_root 'cd / && bundle/gpu_report --part facts --json /tmp/facts.json')"
got=$?
[[ $got == 0 && "$said" == *"Fake GPU"* && "$said" == *"kernels yes"* ]] || fail "facts: exit $got, $said"
[[ -s "$root/tmp/facts.json" ]] || fail "no JSON is left"
echo "$said"

said="$(in_root 'bundle/gpu_device_test')"
got=$?
[[ $got == 0 && "$said" == *"OK ] GpuDevice.IsThere"* && "$said" != *FAILED* ]] || fail "gpu_device_test: exit $got, $said"
[[ "$said" != *"fake driver: "* ]] || fail "what no driver takes: $said"

# What is opened where LD_TRACE_LOADED_OBJECTS lists it.
listed="$(in_root 'for p in gpu_report gpu_device_test; do LD_TRACE_LOADED_OBJECTS=1 /bundle/programs/$p; done')"
while read -r line; do
  case "$line" in
    *"not found"*) fail "a library is missing: $line" ;;
    *" => /bundle/programs/"* | *libc.so* | *libm.so* | *libdl.so* | *librt.so* | *libpthread.so* | *ld-linux* | *vdso*) ;;
    *) fail "a library is the system's: $line" ;;
  esac
done <<<"$listed"
[[ "$listed" == *libdnnl* ]] || fail "nothing is listed: $listed"
exit "$((failures > 0))"
