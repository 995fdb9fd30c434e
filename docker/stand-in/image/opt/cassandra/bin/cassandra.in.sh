# What the stock scripts of this name set: the class path, and the options in the files for this Java.

JAVA=$JAVA_HOME/bin/java
CLASSPATH=$CASSANDRA_CONF
for jar in "$CASSANDRA_HOME"/lib/*.jar; do
    CLASSPATH=$CLASSPATH:$jar
done

# <server or clients>: adds the lines that begin with a dash
read_jvm_options() {
    local file line
    for file in "$CASSANDRA_CONF/jvm-$1.options" "$CASSANDRA_CONF"/jvm[0-9]*-"$1".options; do
        while read -r line; do
            [[ $line != -* ]] || JVM_OPTS="$JVM_OPTS $line"
        done < "$file"
    done
}
