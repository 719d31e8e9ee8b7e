package agent

import (
	"slices"
	"strings"

	"sluice/rag"
)

// attributes are properties of people and things that have one plain name in English, each with other words that a schema
// may have for it. A question that names one which neither the schema nor the data has, under none of these words, asks
// for what is not there. It is a list of general English, for no database.
var attributes = pairsOf(`
	salary: salary wage pay income compensation earning remuneration
	wage: salary wage pay income compensation earning
	age: age birth born dob year
	birthday: birth born dob birthday
	birthdate: birth born dob birthdate
	gender: gender sex male female
	phone: phone telephone mobile cell tel contact
	telephone: phone telephone mobile cell tel contact
	fax: fax
	email: email mail contact
	weight: weight mass kg lb gram kilogram heavy
	height: height tall cm elevation altitude
	color: color colour
	colour: color colour
	religion: religion faith
	ethnicity: ethnic race ethnicity
	nationality: nation country citizen national origin
	password: password
	hobby: hobby interest
	supplier: supplier vendor provider manufacturer maker brand source
	warehouse: warehouse depot stock storage location
	profit: profit margin revenue cost price expense income gain
	temperature: temperature celsius fahrenheit degree
	weather: weather rain temperature wind
	satisfaction: satisfaction rating score review feedback survey
	carrier: carrier shipper shipping courier airline transport
	insurance: insurance insurer policy
	spouse: spouse partner husband wife married
`)

func pairsOf(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		if name, others, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			out[name] = strings.Fields(others)
		}
	}
	return out
}

// lacks names an attribute that the question asks for and nothing here has; "" when there is none. It looks at the names
// and comments of everything that the asker may read.
func (k *ask) lacks() string {
	if k.q.Evidence != "" || !k.unknownForSure() {
		return ""
	}
	for _, w := range k.focus.Unknown {
		name := strings.ToLower(w)
		others, ok := attributes[name]
		if !ok {
			name = singular(name)
			others, ok = attributes[name]
		}
		if ok && !k.mentions(others) {
			return name
		}
	}
	return ""
}

func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

// mentions says whether a name or comment of the schema has one of the words, whole or as the beginning or end of one.
func (k *ask) mentions(any []string) bool {
	for _, r := range k.known.Relations() {
		t, _ := k.known.Table(r)
		texts := []string{t.Name, t.Comment}
		for _, c := range t.Columns {
			f, _ := k.known.Facts(rag.ColumnRef{Relation: r, Column: c.Name})
			texts = append(texts, c.Name, f.Comment)
		}
		for _, text := range texts {
			text = strings.ToLower(text)
			if slices.ContainsFunc(any, func(w string) bool {
				return len(w) > 3 && strings.Contains(text, w) || slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }), w)
			}) {
				return true
			}
		}
	}
	return false
}
