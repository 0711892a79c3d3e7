#!/usr/bin/env bash
# PostgreSQL's JDBC driver, HikariCP and Hibernate: programs of our own, since their packages hold no tests.
. "$(dirname "$0")/lib.sh"
case $1 in
prepare)
    java_program jdbc
    ;;
run)
    # What is read and expected depends on neither the machine's time zone nor its language.
    java -Xmx512m -Duser.timezone=Asia/Kolkata -Duser.language=en -cp 'classes:libraries/*' drivers.Main
    ;;
esac
