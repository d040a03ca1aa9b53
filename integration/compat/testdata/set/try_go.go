package main

import (
	"fmt"
	"runtime"
)

func main() {
	c := make(chan string)
	go func() { c <- "a goroutine" }()
	fmt.Println(<-c, runtime.NumCPU(), runtime.GOMAXPROCS(0))
}
