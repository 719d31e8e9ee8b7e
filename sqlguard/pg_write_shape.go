package sqlguard

// The messages of statements that write, beside those of pg_shape.go. What is not here is refused: CASCADE, tablespaces,
// partitions, inheritance, storage parameters, exclusion constraints, operator classes.
var (
	pgInsertShape     = pgFields("override", "", "relation cols select_stmt on_conflict_clause returning_list with_clause")
	pgUpdateShape     = pgFields("", "", "relation target_list where_clause from_clause returning_list with_clause")
	pgDeleteShape     = pgFields("", "", "relation using_clause where_clause returning_list with_clause")
	pgTruncateShape   = pgFields("restart_seqs", "", "relations behavior")
	pgConflictShape   = pgFields("action", "", "infer target_list where_clause")
	pgInferShape      = pgFields("conname", "", "index_elems")
	pgInferElemShape  = pgFields("name ordering nulls_ordering", "", "")
	pgAssignShape     = pgFields("name", "", "val")
	pgTargetNameShape = pgFields("name", "", "")
	pgDefaultShape    = pgFields("typmod", "", "") // SetToDefault: the word DEFAULT

	pgCreateShape     = pgFields("oncommit if_not_exists", "", "relation table_elts")
	pgCreateAsShape   = pgFields("objtype if_not_exists", "", "query into")
	pgIntoShape       = pgFields("on_commit skip_data", "", "rel col_names")
	pgNewColumnShape  = pgFields("colname is_local", "", "type_name constraints")
	pgConstraintShape = pgFields("contype conname is_no_inherit nulls_not_distinct deferrable initdeferred initially_valid generated_when "+
		"fk_matchtype fk_upd_action fk_del_action", "", "raw_expr keys fk_attrs pk_attrs pktable")
	pgIndexShape     = pgFields("idxname access_method unique nulls_not_distinct if_not_exists", "", "relation index_params where_clause")
	pgIndexElemShape = pgFields("name ordering nulls_ordering", "", "expr")
	pgAlterShape     = pgFields("missing_ok", "", "relation cmds objtype")
	pgAlterCmdShape  = pgFields("subtype name missing_ok", "", "def behavior")
	pgRenameShape    = pgFields("newname missing_ok", "", "rename_type relation_type relation subname behavior")
	pgDropShape      = pgFields("remove_type missing_ok", "", "objects behavior")
)
