#!/bin/bash
strace -f -qq -o /tmp/log -e trace=execve,exit_group sh -c '/bin/echo traced; exit 3'
echo "exit $?"
grep -c -e 'execve("/.*) = 0' -e 'exit_group(3)' /tmp/log
