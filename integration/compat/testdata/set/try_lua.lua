print(io.popen("echo a child"):read("l"), 7 // 2, (os.tmpname():gsub("_.*", "")))
print(coroutine.wrap(function() coroutine.yield("a coroutine") end)())
