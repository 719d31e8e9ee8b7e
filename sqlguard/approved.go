package sqlguard

// Approved is a statement that passed the gate. Only the gate makes one, so whoever holds it holds a parsed,
// allow-listed, grant-checked and deparsed statement. The zero Approved is refused by every source.
type Approved struct {
	sql       string
	shown     string
	bindable  string
	database  string
	profile   Profile
	relations []Relation
	patterns  []Pattern
	scans     []Scan
	explain   bool
	writing   Writing
	parts     []Approved
}

// Scan tells how many files of an external table a statement opens.
type Scan struct {
	Relation Relation
	Opened   int
	Total    int
}

// SQL is the deparsed text: the only text that may be executed.
func (a Approved) SQL() string { return a.sql }

// Shown is the text for people and records: the same statement with external tables under their names, where SQL has the
// paths of their files, and sums as they were written, where SQL may have a cast around them. It is never executed.
func (a Approved) Shown() string { return a.shown }

// Bindable is SQL for the source to bind before it runs: NULL stands for each parameter, an empty table for each external
// one, so that no file is opened. It is never executed.
func (a Approved) Bindable() string {
	if a.bindable == "" {
		return a.sql
	}
	return a.bindable
}

// Database is the name of the source that the statement was approved for.
func (a Approved) Database() string { return a.database }

// Profile is the profile that it was approved under.
func (a Approved) Profile() Profile { return a.profile }

// Relations lists the relations that it reads, each once.
func (a Approved) Relations() []Relation { return a.relations }

// Scans lists the external tables that it reads, with the number of files left after pruning.
func (a Approved) Scans() []Scan { return a.scans }

// Patterns lists what the values of the statement's parameters must be held to before it runs.
func (a Approved) Patterns() []Pattern { return a.patterns }

// Explain says whether the plan is asked for, not the rows.
func (a Approved) Explain() bool { return a.explain }

// Valid is false for the zero Approved.
func (a Approved) Valid() bool { return a.sql != "" && a.database != "" && a.profile != NoProfile }
