#!/bin/bash
set -e
cd /work
cat >a.c <<'C'
#include <pthread.h>
#include <stdio.h>
static void *f(void *a) { return a; }
int main(void) {
	pthread_t t;
	void *r;
	pthread_create(&t, 0, f, "a thread");
	pthread_join(t, &r);
	puts(r);
}
C
printf 'a: a.o\n\tgcc -pthread -o a a.o\na.o: a.c\n\tgcc -g -O2 -c a.c\n' >Makefile
make -s -j4
./a
gcc -fopenmp -x c -o threads - <<'C'
#include <omp.h>
#include <stdio.h>
int main(void) { printf("OpenMP %d\n", omp_get_max_threads()); }
C
./threads
