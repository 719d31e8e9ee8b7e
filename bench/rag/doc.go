// Command rag measures searching vectors in PostgreSQL as the product does, against comparing all of them exactly.
//
// 50,000 vectors of 384 numbers vary in 32 dimensions, as vectors of texts vary in few: 500 centres are directions at random in
// them, a vector is a centre, plus its own direction at random of length 0.8, carried into 384 dimensions, plus noise of length
// 0.2 in all of those, scaled to length 1. Questions are made the same way. Metadata gives each vector one of 100 teams, by its
// place and not by its cluster, so that a filter for one team keeps 1 % and cuts across all clusters: what is near is then mostly
// not of the team, which is the hard case for an index that filters afterwards. (With vectors that vary in all 384 dimensions
// HNSW found 70 % of the ten nearest; no text is like that, and the product compares so few one by one anyway.)
//
//	rag.recall10   of the exact ten nearest of one team, how many the HNSW index finds, on average
//	rag.p95_ms     milliseconds of that search, 95th percentile
//
// Both are of the index, with the product's statement and settings. Beside them, without a bound: the product's search, which
// compares one by one where a filter keeps few; one team with an index of its own; and what comes without iterative_scan.
//
//	the whole run, the figures    main.go
//	making and loading vectors    data.go
//	one kind of search            search.go
package main
