/* Takes memory page by page, as many MiB as the first argument says, and writes how much it has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    int wanted = count > 1 ? atoi(words[1]) : 1024;
    for (int taken = 0; taken < wanted; taken++) {
        char *page = malloc(1024 * 1024);
        if (page == NULL) return 3;
        memset(page, taken, 1024 * 1024);
    }
    printf("{\"taken\": %d}\n", wanted);
    return 0;
}
