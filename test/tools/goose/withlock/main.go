// withlock: a statement under a lock of ddblock, through pgxpool.
//
//	withlock CONNECTION-STRING NAME STATEMENT
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func withLock(ctx context.Context, pool *pgxpool.Pool, name string, work func(*pgxpool.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err = conn.Exec(ctx, `SELECT ddb_lock_acquire($1, wait => '10min')`, name); err != nil {
		return err
	}
	defer conn.Exec(context.Background(), `SELECT ddb_lock_release($1)`, name)
	return work(conn)
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	err = withLock(ctx, pool, os.Args[2], func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, os.Args[3])
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		log.Fatalf("SQLSTATE %s: %s: %s", pgErr.Code, pgErr.Message, pgErr.Detail)
	}
	if err != nil {
		log.Fatal(err)
	}
}
