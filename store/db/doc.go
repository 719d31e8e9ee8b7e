// Package db is the control store's queries as Go functions, made by sqlc from store/query.sql and store/migrations. To
// change one, edit query.sql and run sqlc in store/.
package db
