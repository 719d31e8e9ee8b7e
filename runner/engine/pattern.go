package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkPattern admits the regular expressions that the converter to grammars can read. On others it reads past the end of a
// vector (an operator with nothing before it, "(?:"), never returns (a bare "]"), or makes a class that no token can match,
// which aborts when the answer gets there.
func checkPattern(pattern string) error {
	inner, ok := strings.CutPrefix(pattern, "^")
	if ok {
		inner, ok = strings.CutSuffix(inner, "$")
	}
	if !ok {
		return errors.New("it must begin with ^ and end with $")
	}
	if !utf8.ValidString(inner) || strings.ContainsRune(inner, 0) {
		return errors.New("it has a NUL or a broken character")
	}
	s := &patternScan{in: []rune(inner)}
	if _, err := s.alternatives(0); err != nil {
		return err
	}
	if s.at < len(s.in) {
		return errors.New("a ) without its (")
	}
	return nil
}

// maxPatternDepth bounds groups within groups.
const maxPatternDepth = 32

type patternScan struct {
	in []rune
	at int
}

// alternatives reads up to the end or a ")" that is not its own, and gives the largest product of nested repetitions.
func (s *patternScan) alternatives(depth int) (most int, err error) {
	if depth > maxPatternDepth {
		return 0, fmt.Errorf("groups are nested over %d deep", maxPatternDepth)
	}
	most = 1
	item := 0 // the product of the item before, 0 where there is none
	for s.at < len(s.in) {
		switch c := s.in[s.at]; c {
		case ')':
			return most, nil
		case '|':
			s.at++
			item = 0
		case '(':
			if s.at++; s.at < len(s.in) && s.in[s.at] == '?' {
				return 0, errors.New("groups with (? are not supported")
			}
			if item, err = s.alternatives(depth + 1); err != nil {
				return 0, err
			}
			if s.at == len(s.in) {
				return 0, errors.New("a ( without its )")
			}
			if s.at++; s.in[s.at-2] == '(' || s.in[s.at-2] == '|' {
				return 0, errors.New("an empty group or alternative")
			}
		case '*', '+', '?', '{':
			times, err := s.repetition()
			if err != nil {
				return 0, err
			}
			if item == 0 {
				return 0, fmt.Errorf("%c with nothing before it", c)
			}
			most = max(most, item*times)
			item = 0 // a second operator ("a+?") has nothing to repeat in a grammar
		case ']', '}':
			return 0, fmt.Errorf("a bare %c; write \\%c", c, c)
		case '[':
			if err := s.class(); err != nil {
				return 0, err
			}
			item = 1
		case '\\':
			if _, err := s.escape(".^$[]()|{}*+?/"); err != nil {
				return 0, err
			}
			item = 1
		case '^', '$':
			return 0, fmt.Errorf("%c in the middle", c)
		default:
			s.at++
			item = 1
		}
		if most = max(most, item); most > maxNestedPatterns {
			return 0, fmt.Errorf("its nested repetitions multiply to %d; at most %d", most, maxNestedPatterns)
		}
	}
	return most, nil
}

// repetition reads an operator and gives the most times it may repeat; without a bound it counts once.
func (s *patternScan) repetition() (times int, err error) {
	if s.in[s.at] != '{' {
		s.at++
		return 1, nil
	}
	end := s.at
	for end < len(s.in) && s.in[end] != '}' {
		end++
	}
	if end == len(s.in) {
		return 0, errors.New("a { without its }")
	}
	low, high, ranged := strings.Cut(string(s.in[s.at+1:end]), ",")
	s.at = end + 1
	least, err := strconv.ParseUint(low, 10, 16)
	if err != nil {
		return 0, errors.New("{ } needs a whole number, or two")
	}
	if times = int(least); ranged && high != "" {
		most, err := strconv.ParseUint(high, 10, 16)
		if err != nil || most < least {
			return 0, errors.New("{ } needs two whole numbers, the lower first")
		}
		times = int(most)
	}
	if times > maxRepetition || times == 0 && high != "" {
		return 0, fmt.Errorf("a repetition of %d; from 1 to %d", times, maxRepetition)
	}
	return max(times, 1), nil
}

// escape reads \ and what follows. Grammars know these escapes, besides the signs that regular expressions must escape.
func (s *patternScan) escape(signs string) (rune, error) {
	if s.at+1 >= len(s.in) {
		return 0, errors.New(`a \ at the end`)
	}
	c := s.in[s.at+1]
	s.at += 2
	switch c {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '\\', '"':
		return c, nil
	case 'd':
		return 0, errors.New(`\d is not supported; write [0-9]`)
	case 'w':
		return 0, errors.New(`\w is not supported; write [A-Za-z0-9_]`)
	case 's':
		return 0, errors.New(`\s is not supported; write [ \t\n\r]`)
	}
	if strings.ContainsRune(signs, c) {
		return c, nil
	}
	return 0, fmt.Errorf(`\%c is not supported`, c)
}

// class reads [...] and refuses one that is empty, has a range the wrong way round, or leaves out all plain characters.
func (s *patternScan) class() error {
	s.at++
	negated := s.at < len(s.in) && s.in[s.at] == '^'
	if negated {
		s.at++
	}
	var ranges [][2]rune
	for s.at < len(s.in) && s.in[s.at] != ']' {
		low, err := s.member()
		if err != nil {
			return err
		}
		high := low
		if s.at+1 < len(s.in) && s.in[s.at] == '-' && s.in[s.at+1] != ']' {
			s.at++
			if high, err = s.member(); err != nil {
				return err
			}
		}
		if low > high {
			return fmt.Errorf("the range %c-%c is the wrong way round", low, high)
		}
		ranges = append(ranges, [2]rune{low, high})
	}
	if s.at == len(s.in) {
		return errors.New("a [ without its ]")
	}
	s.at++
	if len(ranges) == 0 {
		return errors.New("an empty class")
	}
	if !negated {
		return nil
	}
	for r := '!'; r <= '~'; r++ {
		in := false
		for _, span := range ranges {
			in = in || span[0] <= r && r <= span[1]
		}
		if !in {
			return nil
		}
	}
	return errors.New("a class that leaves out every plain character")
}

func (s *patternScan) member() (rune, error) {
	if s.in[s.at] == '\\' {
		return s.escape("[]")
	}
	s.at++
	return s.in[s.at-1], nil
}
