// Package rag prepares what a model is told about a database.
//
// Here is the schema card: the tables that an asker may read, written as DDL. The card is the stable beginning of every
// prompt about a database, so equal rights give equal bytes and the engine reuses what it has already read of it.
//
// The package decides nothing about rights. Its caller (agent/schema.go) hands over only what the asker may read, with
// references to other tables already dropped; so a hidden table cannot reach a card by an oversight in here.
//
// Nothing here has state.
//
//	what a table looks like to the model    card.go
//	names as the model must write them      identifier.go
package rag
