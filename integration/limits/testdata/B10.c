/* B10: over the memory limit: swap, or wrong verdict. Over the memory limit the program is not
 * stopped but swaps (and ends as a time-out), or it is OOM-killed so early that the report says
 * "signal 9" / "runtime error, 256 KiB used" instead of "memory limit". */
#include <stdio.h>
static volatile char big[800u << 20];
int main(void) {
    for (unsigned i = 0; i < sizeof big; i += 4096) big[i] = (char)(i >> 12) | 1;
    printf("FAIL: touched %zu MB\n", sizeof big >> 20);
    return 0;
}
