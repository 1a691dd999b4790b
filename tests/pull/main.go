// A program that serves its profiles, as a Go service does: net/http/pprof on a port of its own, which it prints.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

//go:noinline
func price(item int) (sum int) {
	for step := 0; step < item; step++ {
		sum += step * item % 7
	}
	return sum
}

//go:noinline
func total(items int) (sum int) {
	for item := 0; item < items; item++ {
		sum += price(item)
	}
	return sum
}

var basket struct {
	sync.Mutex
	sum int
}

//go:noinline
func serve(items int) {
	sum := total(items)
	basket.Lock()
	time.Sleep(time.Millisecond)
	basket.sum += sum
	basket.Unlock()
}

func main() {
	items, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	runtime.SetMutexProfileFraction(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	for worker := 0; worker < 2; worker++ {
		go func() {
			for {
				serve(items)
				time.Sleep(2 * time.Millisecond)
			}
		}()
	}
	panic(http.Serve(listener, nil))
}
