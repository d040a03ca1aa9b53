/* Reads the CSV from stdin and prints how many days had 0-49, 50-99, ... trips. */
#include <stdio.h>
#include <stdlib.h>

#define BINS 12

int main(void) {
    char line[256], date[16], station[32];
    int trips, count[BINS] = {0}, rows = 0;
    if (!fgets(line, sizeof line, stdin)) return 1;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%15[^,],%31[^,],%d,", date, station, &trips) != 3) continue;
        int bin = trips / 50;
        count[bin < BINS ? bin : BINS - 1]++;
        rows++;
    }
    for (int i = 0; i < BINS; i++)
        if (count[i]) printf("%3d-%3d %3d\n", i * 50, i * 50 + 49, count[i]);
    printf("%d rows\n", rows);
    return 0;
}
