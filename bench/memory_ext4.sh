# Sourced by benches: ext4 on a loop device whose image lies in memory, in mounts of one's own.
#
#   in_own_mounts SCRIPT [ARGUMENT...]   starts the script over in a mount namespace of its own
#   make_scratch BYTES                   a tmpfs of at most that size at $scratch
#   make_ext4 BYTES                      ext4 at $mnt, its image in $scratch
#
# Both are gone when the script ends, however it does.

# Nobody else's namespace can take a copy of the mounts and keep them busy.
in_own_mounts() {
    [ -n "${BENCH_HAS_OWN_MOUNTS:-}" ] ||
        exec env BENCH_HAS_OWN_MOUNTS=1 unshare --mount --propagation private "$@"
}

clean_up() {
    [ -z "${workers_were:-}" ] || give_workers_back
    if [ -n "${loop:-}" ]; then
        umount "$loop" 2>/dev/null || true
        losetup -d "$loop" || true
    fi
    # The kernel lets go of a loop device's image a moment after the detach.
    for _ in $(seq 50); do
        [ -n "$(losetup -j "$scratch/image")" ] || break
        sleep 0.1
    done
    # A signal may have come while output went to a file there, which is still open.
    umount --lazy "$scratch"
    rmdir "$scratch"
}

make_scratch() {
    scratch=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 130' INT TERM
    mount -t tmpfs -o size="$1" iostep-bench "$scratch"
}

make_ext4() {
    mnt=$scratch/mnt
    truncate -s "$1" "$scratch/image"
    loop=$(losetup --find --show "$scratch/image")
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
    mkdir "$mnt"
    mount "$loop" "$mnt"
}
