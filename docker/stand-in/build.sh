#!/usr/bin/env bash
# Builds stand-ins for the stock Cassandra images that the container tests need and that this machine neither has nor can
# pull. They have the official images' paths, user, entrypoint and option files, with Debian's Java and Maven Central's
# Cassandra. They are for these tests only, say so in their label, and are not to be published.
#   docker/stand-in/build.sh [<image> ...]      one that is there is left alone: docker rmi it to have it built anew
set -euo pipefail
umask 022
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "stand-in: $1" >&2; exit 1; }

# Asks the machine's own package servers, with the names of the suites that have the packages that are needed:
# bullseye Java 11, bookworm Java 17, trixie Java 21 and everything else, of which the newest is taken.
prepare_packages() {
    local own=/etc/apt/sources.list.d/debian.sources codename
    [ -f "$own" ] || fail "no $own: it says where packages come from; build the stand-ins on Debian 12 or later"
    mkdir -p "$scratch"/{sources,lists/partial,cache/archives/partial,packages}
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    sed -E "/^Suites:/ { s/ $codename-updates//; s/$codename(\S*)/bullseye\1 bookworm\1 trixie\1/ }" "$own" \
        > "$scratch/sources/stand-in.sources"
    apt=(-qq -o APT::Sandbox::User=root
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$scratch/sources"
        -o Dir::State::Lists="$scratch/lists" -o Dir::Cache="$scratch/cache")
    apt-get "${apt[@]}" update
}

# Unpacks packages into a root file system, each downloaded once.
unpack() {
    local root=$1 package
    shift
    for package in "$@"; do
        compgen -G "$scratch/packages/${package}_*.deb" > /dev/null \
            || (cd "$scratch/packages" && apt-get "${apt[@]}" download "$package")
        dpkg-deb --fsys-tarfile "$scratch"/packages/"$package"_*.deb \
            | tar -x -C "$root" --keep-directory-symlink --no-same-owner
    done
}

build() {
    local image=$1 version=$2 java=$3 root=$scratch/root applet
    [ -n "${apt:-}" ] || prepare_packages

    rm -rf "$root"
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64,local/bin} "$root"/{etc,root,run,var,opt/java}
    mkdir -m 1777 "$root/tmp"
    for applet in bin sbin lib lib64; do
        ln -s "usr/$applet" "$root/$applet"
    done
    unpack "$root" libc6 libgcc-s1 libstdc++6 zlib1g libtinfo6 bash busybox-static gosu "openjdk-$java-jre-headless"
    for applet in $("$root/usr/bin/busybox" --list); do
        [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
    done
    ln -s "/usr/lib/jvm/java-$java-openjdk-amd64" "$root/opt/java/openjdk"

    cp -r "$here/image/." "$root"
    find "$root/etc/cassandra" -name 'jvm[0-9]*' ! -name "jvm$java-*" -delete
    mvn -B -ntp -q -Dstyle.color=never -f "$here/pom.xml" dependency:copy-dependencies \
        -Dcassandra.version="$version" -DoutputDirectory="$root/opt/cassandra/lib"
    mkdir -p "$root"/var/{lib,log}/cassandra
    ln -s /etc/cassandra "$root/opt/cassandra/conf"
    ln -s /var/lib/cassandra "$root/opt/cassandra/data"
    ln -s /var/log/cassandra "$root/opt/cassandra/logs"
    chmod 1777 "$root"/etc/cassandra "$root"/var/{lib,log}/cassandra
    chmod -R a+rwX "$root/etc/cassandra"

    tar -C "$root" --owner=0 --group=0 -c . | docker import \
        --change 'ENV JAVA_HOME=/opt/java/openjdk CASSANDRA_HOME=/opt/cassandra CASSANDRA_CONF=/etc/cassandra' \
        --change 'ENV PATH=/opt/cassandra/bin:/opt/java/openjdk/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        --change "ENV CASSANDRA_VERSION=$version" \
        --change 'VOLUME /var/lib/cassandra' \
        --change 'EXPOSE 7000 7001 7199 9042' \
        --change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
        --change 'CMD ["cassandra", "-f"]' \
        --change 'LABEL dev.cassandrahotpatch.stand-in="for the tests of Cassandra Hotpatch only, not the official image, never to be published"' \
        - "$image" > /dev/null
}

[ $# -gt 0 ] || set -- cassandra:4.0 cassandra:4.1 cassandra:4.1.3 cassandra:5.0 cassandra:6.0-alpha2
for image in "$@"; do
    if docker image inspect "$image" > /dev/null 2>&1; then
        echo "stand-in: $image is there"
    elif timeout 300 docker pull --quiet "$image" > /dev/null 2>&1; then
        echo "stand-in: $image has been pulled"
    else
        case $image in
            cassandra:4.0) build "$image" 4.0.19 11 ;;
            cassandra:4.1) build "$image" 4.1.10 11 ;;
            cassandra:4.1.*) build "$image" "${image#*:}" 11 ;;
            cassandra:5.0) build "$image" 5.0.9 17 ;;
            cassandra:6.0-*) build "$image" "${image#*:}" 21 ;;
            *) fail "$image can't be pulled, and there is no stand-in for it, only for 4.0, 4.1, 5.0 and 6.0" ;;
        esac
        echo "stand-in: $image has been built after $SECONDS s"
    fi
done
