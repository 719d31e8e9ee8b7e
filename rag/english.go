package rag

import "strings"

// What stands here is general English. No word is here for the sake of a database or of a set of questions.

// stopWords say nothing about which tables a question is about. Verbs are those of asking.
var stopWords = set(`a about above after again against all also although am among an and any are as ask at be because been
	before being below between both but by can could did do does doing down during each either else ever every few for from
	further get gets give given gives had has have having he her here hers him his how however i if in into is it its itself
	just least less let like list lists many may me might more most much must my neither no nor not of off on once one only
	or other others our ours out over own per please return returns same shall she should show shows since so some still such
	tell than that the their theirs them then there therefore these they this those though through to too toward towards
	under until up upon us use used using very was we were what when where whether which while who whom whose why will with
	within without would yes yet you your yours
	find compute calculate determine display provide want need know see consider assume suppose take today now
	exclude excluding include including included based respectively together along across regardless instead
	first second third last two three four five six seven eight nine ten`)

// measures are what people ask to be worked out, and by what. They may name a column, but they are no value.
var measures = set(`amount amounts average averages avg mean median total totals sum sums count counts number numbers maximum minimum
	max min highest lowest largest smallest biggest greatest longest shortest best worst top bottom higher lower larger smaller
	bigger greater longer shorter better worse percentage percentages percent share shares ratio ratios rate rates difference
	differences distinct unique different common latest earliest newest oldest recent previous next current past
	daily weekly monthly quarterly yearly annual annually year years month months week weeks day days quarter quarters hour
	hours minute minutes date dates time times name names order sort sorted group grouped rank ranked ascending descending
	alphabetical alphabetically chronological overall exactly case`)

// calendar are names that are capitalised in English and are no names of things.
var calendar = set(`january february march april may june july august september october november december
	jan feb mar apr jun jul aug sep sept oct nov dec
	monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
	q1 q2 q3 q4 am pm bc ad utc gmt iso
	mondays tuesdays wednesdays thursdays fridays saturdays sundays`)

// irregular are the irregular plurals and the commonest irregular verbs, with their base.
var irregular = pairs(`people person men man women woman children child feet foot teeth tooth mice mouse geese goose
	lives life wives wife knives knife leaves leaf halves half shelves shelf wolves wolf selves self
	criteria criterion phenomena phenomenon analyses analysis bases basis crises crisis theses thesis hypotheses hypothesis
	indices index indexes index matrices matrix vertices vertex appendices appendix
	written write wrote write taught teach bought buy sold sell made make paid pay held hold given give gave give
	taken take took take found find left leave lent lend spent spend sent send built build met meet won win lost lose
	began begin begun begin chosen choose chose choose driven drive drove drive flown fly flew fly grown grow grew grow
	known know knew know shown show led lead ran run sat sit stood stand thought think told tell understood understand
	went go gone go came come became become got get kept keep brought bring caught catch fell fall fallen fall
	felt feel heard hear hid hide hidden hide rode ride ridden ride rose rise risen rise said say saw see seen see
	sang sing sung sing slept sleep spoke speak spoken speak stole steal stolen steal swam swim threw throw thrown throw
	wore wear worn wear broke break broken break drew draw drawn draw ate eat eaten eat forgot forget forgotten forget
	laid lay lain lie bound bind fed feed fought fight hung hang dealt deal meant mean read read`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

func pairs(words string) map[string]string {
	out := map[string]string{}
	list := strings.Fields(words)
	for i := 0; i+1 < len(list); i += 2 {
		out[list[i]] = list[i+1]
	}
	return out
}
