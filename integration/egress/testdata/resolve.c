/* Fetches by HTTP with the libc's own resolver (musl's, when built with it). */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *list;
	int e = getaddrinfo(argv[1], "80", &hint, &list);
	if (e) {
		printf("%s: %s\n", argv[1], gai_strerror(e));
		return 1;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next) {
		int s = socket(a->ai_family, a->ai_socktype, 0);
		if (s < 0 || connect(s, a->ai_addr, a->ai_addrlen)) {
			perror("connect");
			continue;
		}
		dprintf(s, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
		char buf[4096];
		int n = 0, m;
		while ((m = read(s, buf + n, sizeof buf - 1 - n)) > 0)
			n += m;
		buf[n] = 0;
		char *body = strstr(buf, "\r\n\r\n");
		printf("%s", body ? body + 4 : "?\n");
		close(s);
	}
	return 0;
}
