// Package lakecopy lands query results as Parquet files in a lake (COPY … TO LAKE), and reads such folders back as
// external tables. In this version a lake is a local folder.
//
// A run is one attempt of a COPY: source batches → converted columns → partition router → bounded open files, staged
// below .sluice/stage/<run> → published under a lock by hard links that fail if the name exists → recorded as committed
// → the replaced files deleted. Until the first link nothing is visible; until the record is on the disk everything is
// taken back; after it nothing new is ever deleted. What a crash leaves is settled by New, from the run's record.
//
// One goroutine, the caller's, owns a run and all its writers. The only state shared between runs is the publish lock
// (lock.go), the count of runs for Close, and the Journal.
//
//	opening and closing it all, what it needs      service.go
//	who may copy where; one COPY from end to end   copy.go, connection.go
//	ids of runs                                    id.go
//	kinds of failure and their codes               failure.go
//	the query's columns: names, files, partitions  shape.go
//	DuckDB's Arrow types → Parquet's, refusals     convert.go, values.go
//	partition columns, Hive names and escapes      partition.go, hive.go
//	batches → files per partition, memory bounds   router.go
//	settings of one Parquet file, NaN, blooms      file.go, sample.go
//	making a staged set visible, taking it back    publish.go, layout.go
//	one publisher a folder; who still runs         lock.go
//	after a crash                                  recover.go
//	the file operations, which tests make fail     folder.go
//	EXPLAIN COPY                                   explain.go
//	what an agent asked for and a person approved  request.go
//	external tables                                external.go, walk.go, typenames.go
package lakecopy
