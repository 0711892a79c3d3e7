#!/usr/bin/env bash
# PostgreSQL's JDBC driver, HikariCP and Hibernate: programs of our own, since their packages hold no tests.
. "$(dirname "$0")/lib.sh"
project=$DRIVERS_SOURCE/jdbc
case $1 in
prepare)
    versions=$(sha256sum <"$project/pom.xml")
    prepared "$versions" || {
        command -v mvn >/dev/null || fail "mvn is missing" "apt-get install maven"
        rm -rf libraries
        mvn -q -B -f "$project/pom.xml" -Dmaven.repo.local="$DRIVERS_WORK/repository" \
            dependency:copy-dependencies -DoutputDirectory="$DRIVERS_WORK/libraries"
        # Some 40 MB of Maven's own parts, which nothing needs any more.
        rm -rf repository
        finished "$versions"
    }
    command -v javac >/dev/null || fail "javac is missing" "apt-get install openjdk-17-jdk-headless"
    rm -rf classes
    javac -nowarn -proc:none -encoding UTF-8 -d classes -cp 'libraries/*' "$project"/src/*.java
    ;;
run)
    # What is read and expected depends on neither the machine's time zone nor its language.
    java -Xmx512m -Duser.timezone=Asia/Kolkata -Duser.language=en -cp 'classes:libraries/*' drivers.Main
    ;;
esac
