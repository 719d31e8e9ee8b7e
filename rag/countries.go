package rag

import (
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// countryCodes gives the ISO 3166 codes of two and three letters of a country's English name, folded. Databases keep
// codes, people write names.
var countryCodes = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	names := display.English.Regions()
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			region, err := language.ParseRegion(string([]rune{a, b}))
			if err != nil || !region.IsCountry() || region.String() != string([]rune{a, b}) {
				continue
			}
			if name := foldPhrase(names.Name(region)); name != "" {
				out[name] = []string{fold(region.String()), fold(region.ISO3())}
			}
		}
	}
	return out
})

// inCountries are stems of words that name a column of countries.
var inCountries = []string{stem("country"), stem("nation"), stem("nationality")}

// country gives the codes of a country in columns that are said to hold countries.
func (x *valueIndex) country(folded string) []hit {
	var out []hit
	for _, code := range countryCodes()[folded] {
		for _, h := range x.hits(x.exact[code], Code, 1) {
			if x.countries[x.entries[h.entry].column] {
				out = append(out, h)
			}
		}
	}
	return out
}
