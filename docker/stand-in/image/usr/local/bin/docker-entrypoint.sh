#!/usr/bin/env bash
# Does what the official image's entrypoint does: cassandra is run as its user, with CASSANDRA_* put into cassandra.yaml.
set -e

if [ $# = 0 ] || [[ $1 == -* ]]; then
    set -- cassandra -f "$@"
fi

if [ "$1" = cassandra ]; then
    if [ "$(id -u)" = 0 ]; then
        chown -R cassandra:cassandra "$CASSANDRA_CONF" /var/lib/cassandra /var/log/cassandra
        exec gosu cassandra "$0" "$@"
    fi

    address=$(ip -4 addr show scope global | awk '$1 == "inet" { sub("/.*", "", $2); print $2; exit }')
    : "${CASSANDRA_RPC_ADDRESS=0.0.0.0}"
    [ "${CASSANDRA_LISTEN_ADDRESS:=auto}" != auto ] || CASSANDRA_LISTEN_ADDRESS=$address
    : "${CASSANDRA_BROADCAST_ADDRESS:=$CASSANDRA_LISTEN_ADDRESS}"
    : "${CASSANDRA_BROADCAST_RPC_ADDRESS:=$CASSANDRA_BROADCAST_ADDRESS}"
    : "${CASSANDRA_SEEDS:=$CASSANDRA_BROADCAST_ADDRESS}"

    # written in place: the file may be a mount
    edit() {
        local edited
        edited=$(sed -E "$2" "$CASSANDRA_CONF/$1")
        echo "$edited" > "$CASSANDRA_CONF/$1"
    }
    edit cassandra.yaml "s/(- seeds:).*/\1 \"$CASSANDRA_SEEDS\"/"
    for key in broadcast_address broadcast_rpc_address cluster_name endpoint_snitch listen_address num_tokens rpc_address; do
        variable=CASSANDRA_${key^^}
        [ -z "${!variable}" ] || edit cassandra.yaml "s/^(# )?($key:).*/\2 ${!variable}/"
    done
    for key in dc rack; do
        variable=CASSANDRA_${key^^}
        [ -z "${!variable}" ] || edit cassandra-rackdc.properties "s/^($key=).*/\1${!variable}/"
    done
fi

exec "$@"
