# The ways of Python to fetch, one line each.
import asyncio, ssl, sys, urllib.request, http.client
url = "https://good.example/"
which = sys.argv[1]
if which == "urllib":
    print(urllib.request.urlopen(url).read().decode(), end="")
elif which == "requests":
    import requests
    print(requests.get(url).text, end="")
    print(requests.post(url + "echo", data="posted").text)
elif which == "http.client":
    c = http.client.HTTPSConnection("good.example")
    for i in range(3):  # one connection, three requests
        c.request("GET", "/")
        print(c.getresponse().read().decode(), end="")
elif which == "asyncio":
    async def get():
        r, w = await asyncio.open_connection("good.example", 443, ssl=True)
        w.write(b"GET / HTTP/1.0\r\nHost: good.example\r\n\r\n")
        text = await r.read()
        w.close()
        return text.split(b"\r\n\r\n")[1].decode()
    async def main():
        for text in await asyncio.gather(*[get() for _ in range(5)]):
            print(text, end="")
    asyncio.run(main())
