#!/bin/sh
# A16: JVM heap sizing. (1) under an address-space limit the JVM cannot reserve its heap; (2)
# where it cannot see the cgroup limit it sizes its heap from the host's RAM and is OOM-killed
# with most of its heap still garbage.
command -v java >/dev/null 2>&1 || { echo "SKIP: no java"; exit 77; }
d=$(mktemp -d); cd "$d" || exit 1
cat >M.java <<'J'
public class M { public static void main(String[] a) throws Exception {
  long mb = Runtime.getRuntime().maxMemory() >> 20; Thread t = new Thread(() -> {}); t.start(); t.join();
  System.out.println(mb); } }
J
mb=$(java M.java 2>err) || mb=
if [ -z "$mb" ]; then java -version >/dev/null 2>err2 || { echo "FAIL: $(head -2 err2)"; exit 1; }
  mb=$(java -XX:+PrintFlagsFinal -version 2>/dev/null | awk '/ MaxHeapSize /{print int($4/1048576)}'); fi
echo "max heap ${mb} MB, limit ${MEM_LIMIT_MB:-unset} MB"
if [ -n "$MEM_LIMIT_MB" ] && [ "$mb" -ge "$MEM_LIMIT_MB" ]; then echo "FAIL: heap sized from the host"; exit 1; fi
cd /; rm -rf "$d"; echo PASS
