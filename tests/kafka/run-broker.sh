#!/bin/sh
# Runs the command given as arguments (the broker) in the folder BROKER_DIR and stops it, whatever happens, as soon as
# the process that started this script is gone: that process holds the other end of this script's standard input, and
# a test process may end by a panic, an abort or an exit without running any destructor. The folder is then removed,
# unless it holds a file `kept`: a test killed the broker to start it again.
cd "$BROKER_DIR" || exit 1
exec 3<&0
"$@" </dev/null >broker.log 2>&1 3<&- &
broker=$!
( read -r line <&3; kill -9 "$broker" 2>/dev/null ) >/dev/null 2>&1 &
watcher=$!
wait "$broker" 2>/dev/null
status=$?
kill "$watcher" 2>/dev/null
[ "$status" -eq 137 ] && [ ! -e kept ] && cd / && rm -rf "$BROKER_DIR"
exit "$status"
