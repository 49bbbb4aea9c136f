#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proof that no installation step is missing: both commands of README.md in a fresh Debian 12, or Ubuntu 24.04
# (debootstrap, chroot), from a clean clone of HEAD. Takes over the machine's apt and pip settings and certificates, so
# that mirrors and proxies work there too. Run by hand, as root; needs debootstrap and git, for Ubuntu its package
# ubuntu-keyring, 25 GiB of disk, and up to an hour.
#   packaging/check_fresh.sh [--keep] [--ubuntu] [FOLDER]     FOLDER: where the system is made (default below /var/tmp)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD

# In namespaces of its own: whatever happens, no mount and no process of the fresh system outlives this.
if [[ -z ${SHARDSCOPE_FRESH_NAMESPACE:-} ]] && ((EUID == 0)); then
  exec env SHARDSCOPE_FRESH_NAMESPACE=1 unshare --mount --propagation private --pid --fork --kill-child "$root/packaging/check_fresh.sh" "$@"
fi

keep='' distribution='Debian 12' suite=bookworm
while [[ ${1:-} == --* ]]; do
  case $1 in
    --keep) keep=1 ;;
    --ubuntu) distribution='Ubuntu 24.04' suite=noble ;;
    *) echo "check_fresh.sh: there is no option $1; see its first lines." >&2; exit 2 ;;
  esac
  shift
done
readonly ubuntuKeyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg

die() { printf 'check_fresh.sh: %s\n' "$*" >&2; exit 1; }
((EUID == 0)) || die "only root can make a chroot: sudo packaging/check_fresh.sh"
for tool in debootstrap git; do
  command -v $tool >/dev/null || die "$tool is missing: apt-get install -y $tool"
done
[[ $suite != noble || -s $ubuntuKeyring ]] || die "$ubuntuKeyring is missing: it is Ubuntu's package ubuntu-keyring."
if [[ -n $(git status --porcelain) ]]; then
  echo "Note: the working tree has changes that are not committed; HEAD is checked."
fi

readonly system=${1:-$(mktemp -d /var/tmp/shardscope-fresh.XXXXXX)}
readonly clone=/home/someone/shardscope
mkdir -p "$system"
chmod 755 "$system" # mktemp's is root's alone, and an ordinary user runs the tests
[[ -z $(ls -A "$system") ]] || die "$system is not empty."

cleanUp() {
  local mounted
  # Deepest first. Nothing is removed while anything of the machine is still mounted below.
  while read -r mounted; do umount -l "$mounted"; done < <(findmnt -rno TARGET | grep -F "$system/" | sort -r)
  if [[ $keep ]]; then echo "Kept: $system"; return; fi
  if findmnt -rno TARGET | grep -qF "$system/"; then echo "Left behind, still mounted: $system" >&2; return; fi
  rm -rf --one-file-system "$system"
}
trap cleanUp EXIT

# The mirror that the machine uses.
mirror() {
  local uri
  [[ $suite == noble ]] && { echo "${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}"; return; }
  # shellcheck disable=SC2016 # apt's own $(…)
  uri=$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 2>/dev/null \
    | awk '$2 == "Debian" && $1 !~ /security/ {print $1; exit}')
  echo "${uri:-http://deb.debian.org/debian}"
}

makeSystem() {
  local options=(--variant=minbase "--include=ca-certificates,git")
  if [[ $suite == noble ]]; then
    # Older versions of debootstrap do not know the name; all releases are made alike.
    debootstrap "${options[@]}" --components=main,universe --keyring="$ubuntuKeyring" noble "$system" "$(mirror)" gutsy
  else
    debootstrap "${options[@]}" "$suite" "$system" "$(mirror)"
  fi
}

copySettings() {
  local part
  if [[ $suite == noble ]]; then
    for part in noble noble-updates noble-security; do echo "deb $(mirror) $part main universe"; done >"$system/etc/apt/sources.list"
  elif grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
    # Debian's own sources alone: another one could bring a package that a fresh Debian lacks.
    rm -f "$system/etc/apt/sources.list"
    grep -sh debian /etc/apt/sources.list >"$system/etc/apt/sources.list" || true
    cp /etc/apt/sources.list.d/debian*.sources "$system/etc/apt/sources.list.d/" 2>/dev/null || true
  fi
  for part in apt.conf apt.conf.d auth.conf auth.conf.d trusted.gpg.d keyrings; do
    [[ -e /etc/apt/$part ]] && cp -a "/etc/apt/$part" "$system/etc/apt/"
  done
  for part in /etc/pip.conf /etc/resolv.conf /etc/hosts /root/.config/pip /root/.pip; do
    [[ -e $part ]] && mkdir -p "$system$(dirname $part)" && cp -aL "$part" "$system$(dirname $part)/"
  done
  mkdir -p "$system/usr/local/share/ca-certificates"
  cp -a /usr/local/share/ca-certificates/. "$system/usr/local/share/ca-certificates/" 2>/dev/null || true
  cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
}

mountSystem() {
  mount -t proc proc "$system/proc"
  # The devices are those that debootstrap made: nothing that root does in there reaches the machine's own.
  mount --bind /dev/pts "$system/dev/pts"
  mount -t tmpfs tmpfs "$system/dev/shm"
  mount -t tmpfs tmpfs "$system/run"
}

# inside USER COMMAND: proxies, certificates and pip's settings go in; nothing else of this session does.
inside() {
  local passed=() name home=/root
  [[ $1 == root ]] || home=/home/$1
  while IFS= read -r name; do passed+=("$name=${!name}"); done \
    < <(compgen -e | grep -E '^(PIP_.*|.*_CA_.*|.*CERT.*|(http|https|no|ftp)_proxy|(HTTP|HTTPS|NO)_PROXY)$')
  env -i "${passed[@]}" HOME="$home" USER="$1" TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    chroot --userspec="$1" "$system" bash -c "cd '$clone' && $2"
}

# Without root it must stop and print one line that names what is missing.
checkWithoutRoot() {
  local said
  if said=$(inside someone "packaging/setup.sh" 2>&1); then die "setup.sh did not stop where it may not install anything."; fi
  grep -q 'sudo apt-get update && sudo apt-get install -y .*libqcustomplot-dev' <<<"$said" \
    || die "setup.sh did not print the apt-get line that is missing: $said"
}

times=()
timed() { # timed NAME COMMAND...
  local name=$1 started=$SECONDS
  shift
  printf '\n=== %s\n' "$name"
  "$@" || die "\"$name\" failed after $((SECONDS - started)) s."
  times+=("$(printf '%6d s  %s' $((SECONDS - started)) "$name")")
}

timed "debootstrap $suite" makeSystem
copySettings
mountSystem
chroot "$system" useradd --create-home --shell /bin/bash someone
git clone -q --no-hardlinks "$root" "$system$clone"
chroot "$system" chown -R someone: "$clone"
printf 'Checking %s in %s\n' "$(git log -1 --format='%h %s')" "$system"
timed "packaging/setup.sh, without root" checkWithoutRoot
timed "packaging/quickstart.sh, as root, no display" inside root packaging/quickstart.sh
for page in live timeline memory; do
  [[ -s $system/root/.local/share/shardscope/runs/demo/$page.png ]] || die "the quickstart left no picture $page.png."
done
# What root built serves an ordinary user, who runs the tests: root's rights would hide mistakes.
chroot "$system" chown -R someone: "$clone"
timed "packaging/test.sh, as a user" inside someone packaging/test.sh
timed "packaging/test.sh again, nothing to build, one test" inside someone "packaging/test.sh -R '^config\$'"

printf '\nBoth commands work in a fresh %s:\n' "$distribution"
printf '%s\n' "${times[@]}"
