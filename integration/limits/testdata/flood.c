/* B14: endless output. The output cap is applied after the run, so gigabytes pile up in the
 * supervisor first; or the reader stops at the cap, the pipe fills, and the run ends as a time-out. */
#include <string.h>
#include <unistd.h>
int main(void) {
    static char line[65536];
    memset(line, 'y', sizeof line);
    for (long left = 4096L * 16; left; left--)
        for (size_t n = 0; n < sizeof line;) {
            ssize_t w = write(left % 2 ? 1 : 2, line + n, sizeof line - n);
            if (w <= 0) return 1;
            n += w;
        }
    return 5;
}
