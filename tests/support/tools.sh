#!/bin/sh
# `make tools`: unpacks packages of requirements-debian.txt whose programs are missing, and what they depend on.
# Nothing is installed: this needs no root, starts no service and leaves the lists of the machine's apt alone.
set -eu
umask 022 # a test as root starts PgBouncer as somebody else
folder=$PWD/.venv/tools
root=$folder/root state=$folder/state
PATH=$PATH:/usr/sbin:$folder/bin

# Lines of a package and a program of it, for each program that is not on this machine.
missing() {
    sed 's/#.*//' requirements-debian.txt | while read -r package programs; do
        for program in $programs; do
            command -v "$program" >/dev/null || echo "$package $program"
        done
    done
}

stop() {
    echo "$1" >&2
    exit 1
}

apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2 \
        -o Dir::State::lists="$state/lists" -o Dir::Cache="$state" -o Dir::Cache::archives="$state/archives" "$@"
}

# Debian's own script of this name, if there is one, names paths of an installed package.
place() {
    cd "$root"
    for path in "usr/lib/$1/$1" "usr/lib/chromium/$1" "usr/bin/$1" "usr/sbin/$1" "bin/$1"; do
        [ ! -x "$path" ] || { echo "$path" && break; }
    done
}

wrap() {
    path=$(place "$1")
    [ -n "$path" ] || return 0
    cat >"$folder/bin/.$1" <<END
#!/bin/sh
folder=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
root=\$folder/root
export LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH-}"
export FONTCONFIG_FILE="\$folder/fonts.conf" SYSTEMD_UNIT_PATH="\$root/lib/systemd/system:"
exec "\$root/$path" "\$@"
END
    chmod +x "$folder/bin/.$1"
    mv "$folder/bin/.$1" "$folder/bin/$1"
}

absent=$(missing)
[ -n "$absent" ] || exit 0 # and so a second run fetches nothing
programs=$(echo "$absent" | cut -d' ' -f2 | paste -sd' ')
command -v apt-get >/dev/null || stop "Tests need these programs, install them: $programs."
echo "Unpacking into .venv/tools: $programs ..."
mkdir -p "$root" "$folder/bin" "$state/lists/partial" "$state/archives/partial"
# A list of somebody else's packages may be out of reach; what is needed from it, the next line says.
apt update >/dev/null || true
# shellcheck disable=SC2046
apt install --yes --no-install-recommends --download-only $(echo "$absent" | cut -d' ' -f1 | sort -u) >/dev/null ||
    stop "apt-get could not fetch these programs: $programs. This needs the network once."
for package in "$state"/archives/*.deb; do
    case $package in
    */libc6_*) ;; # must be the one of the machine's linker
    *) dpkg-deb -x "$package" "$root" ;;
    esac
done
for part in doc man javascript; do
    rm -rf "$root/usr/share/$part" # a quarter of all that is unpacked
done
libraries=$(cd "$root" && find . -name 'lib*.so*' -printf '$root/%h:\n' | sort -u | tr -d '\n')
cat >"$folder/fonts.conf" <<'END'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">root/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
END
for program in $programs; do
    wrap "$program"
done
rm -rf "$state"
absent=$(missing | cut -d' ' -f2 | paste -sd' ')
[ -z "$absent" ] || stop "The packages of this machine's apt have no such programs: $absent. Install them."
