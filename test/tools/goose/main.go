// migrate: goose's migrations under a lock of ddblock.
//
//	migrate CONNECTION-STRING FOLDER
package main

import (
	"context"
	"database/sql"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

type ddblock struct{ name string }

func (l ddblock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `CALL ddb_lock_await($1, wait => '10min')`, l.name)
	return err
}

func (l ddblock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `SELECT ddb_lock_release($1)`, l.name)
	return err
}

func main() {
	db, err := sql.Open("pgx", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS(os.Args[2]),
		goose.WithSessionLocker(ddblock{"migrate/shop"}))
	if err != nil {
		log.Fatal(err)
	}
	results, err := provider.Up(context.Background())
	for _, result := range results {
		log.Print(result)
	}
	if err != nil {
		log.Fatal(err)
	}
}
