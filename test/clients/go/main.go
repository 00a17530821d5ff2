// dynamolock, told on standard input what to do: a command on each line, the answer to each on
// one line of standard output. It says "ready" first, when it has read from the table.
//
//	client URL LEASE_MS HEARTBEAT_MS
//
//	acquire NAME [OPTION ...]  "held", or why not.  Options: try (do not wait), wait=SECONDS (60),
//	                           refresh=MS, delete (the item, when the lock is released), data=TEXT
//	release NAME               "released", or why not
//	data NAME                  the data of a lock that is held
//	contend NAME SECONDS FILE HOLD_MS [OPTION ...]  acquires, holds for about as long, and
//	                           releases, in turn; writes to the file when it held the lock, "SINCE
//	                           UNTIL" in microseconds; "GRANTS LOST", the latter being locks that
//	                           were no longer there to release
package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var (
	locks *dynamolock.Client
	held  = map[string]*dynamolock.Lock{}
)

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	fatal(err)
	return n
}

func milliseconds(text string) time.Duration { return time.Duration(number(text)) * time.Millisecond }

func acquire(name string, words []string) (*dynamolock.Lock, error) {
	wait := 60 * time.Second
	options := []dynamolock.AcquireLockOption{dynamolock.ReplaceData()}
	for _, word := range words {
		option, value, _ := strings.Cut(word, "=")
		switch option {
		case "try":
			options = append(options, dynamolock.FailIfLocked())
		case "wait":
			wait = time.Duration(number(value)) * time.Second
		case "refresh":
			options = append(options, dynamolock.WithRefreshPeriod(milliseconds(value)))
		case "delete":
			options = append(options, dynamolock.WithDeleteLockOnRelease())
		case "data":
			options = append(options, dynamolock.WithData([]byte(value)))
		default:
			fatal(fmt.Errorf("no such option: %s", word))
		}
	}
	options = append(options, dynamolock.WithAdditionalTimeToWaitForLock(wait))
	return locks.AcquireLockWithContext(context.Background(), name, options...)
}

// What it cannot get, or cannot read, it tries again.
func contend(name string, seconds string, path string, holdMs int, words []string) string {
	grants, lost := 0, 0
	file, err := os.Create(path)
	fatal(err)
	end := time.Now().Add(time.Duration(number(seconds)) * time.Second)
	for time.Now().Before(end) {
		lock, err := acquire(name, words)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		since := time.Now().UnixMicro()
		time.Sleep(time.Duration(holdMs/2+rand.Intn(holdMs)) * time.Millisecond)
		fmt.Fprintln(file, since, time.Now().UnixMicro())
		grants++
		if released, err := locks.ReleaseLockWithContext(context.Background(), lock); err != nil || !released {
			lost++
		}
	}
	fatal(file.Close())
	return fmt.Sprint(grants, lost)
}

func obey(words []string) string {
	switch words[0] {
	case "acquire":
		lock, err := acquire(words[1], words[2:])
		if err != nil {
			return err.Error()
		}
		held[words[1]] = lock
		return "held"
	case "release":
		if _, err := locks.ReleaseLockWithContext(context.Background(), held[words[1]]); err != nil {
			return err.Error()
		}
		return "released"
	case "data":
		return string(held[words[1]].Data())
	case "contend":
		return contend(words[1], words[2], words[3], number(words[4]), words[5:])
	}
	fatal(fmt.Errorf("no such command: %s", words[0]))
	return ""
}

func main() {
	var err error
	locks, err = dynamolock.New(
		dynamodb.New(dynamodb.Options{
			Region:       "us-east-1",
			BaseEndpoint: aws.String(os.Args[1]),
			Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		}),
		"lockTable",
		dynamolock.WithOwnerName(fmt.Sprint("go-", os.Getpid())),
		dynamolock.WithLeaseDuration(milliseconds(os.Args[2])),
		dynamolock.WithHeartbeatPeriod(milliseconds(os.Args[3])))
	fatal(err)
	_, err = locks.Get("ready")
	fatal(err)
	fmt.Println("ready")
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		fmt.Println(obey(strings.Fields(commands.Text())))
	}
}
