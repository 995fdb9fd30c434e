# As the stock file; but where no heap is given it is 1 GiB, whatever the machine has.

if [ "${MAX_HEAP_SIZE:+given}" != "${HEAP_NEWSIZE:+given}" ]; then
    echo "please set or unset MAX_HEAP_SIZE and HEAP_NEWSIZE in pairs"
    exit 1
fi
JVM_OPTS="$JVM_OPTS -Xms${MAX_HEAP_SIZE:-1G} -Xmx${MAX_HEAP_SIZE:-1G} -Xmn${HEAP_NEWSIZE:-200M}"
JVM_OPTS="$JVM_OPTS -javaagent:$(echo "$CASSANDRA_HOME"/lib/jamm-*.jar)"
JVM_OPTS="$JVM_OPTS -Dcassandra.jmx.local.port=${JMX_PORT:-7199}"
JVM_OPTS="$JVM_OPTS $JVM_EXTRA_OPTS"
