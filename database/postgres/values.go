package postgres

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"sluice/fault"
)

// PostgreSQL counts days and microseconds from 2000-01-01, Arrow from 1970-01-01.
const (
	epochDays   = 10_957
	epochMicros = epochDays * 86_400_000_000
	dayMicros   = 86_400_000_000
)

func broken(name string) error {
	return fault.Bug("a value of the column %q has a form that is not that of its type", name)
}

func rangeError(name, what, hint string) error {
	f := fault.New(fault.Invalid, "postgres.Run", "column %s holds %s", name, what)
	f.Kind, f.Hint = "range", hint
	return f
}

func addBool(b array.Builder, name string) appender {
	to := b.(*array.BooleanBuilder)
	return func(src []byte) error {
		if len(src) != 1 {
			return broken(name)
		}
		to.UnsafeAppend(src[0] != 0)
		return nil
	}
}

func addInt2(b array.Builder, name string) appender {
	to := b.(*array.Int16Builder)
	return func(src []byte) error {
		if len(src) != 2 {
			return broken(name)
		}
		to.UnsafeAppend(int16(binary.BigEndian.Uint16(src)))
		return nil
	}
}

func addInt4(b array.Builder, name string) appender {
	to := b.(*array.Int32Builder)
	return func(src []byte) error {
		if len(src) != 4 {
			return broken(name)
		}
		to.UnsafeAppend(int32(binary.BigEndian.Uint32(src)))
		return nil
	}
}

func addInt8(b array.Builder, name string) appender {
	to := b.(*array.Int64Builder)
	return func(src []byte) error {
		if len(src) != 8 {
			return broken(name)
		}
		to.UnsafeAppend(int64(binary.BigEndian.Uint64(src)))
		return nil
	}
}

// addUint4 is for oid and its like, which are unsigned.
func addUint4(b array.Builder, name string) appender {
	to := b.(*array.Int64Builder)
	return func(src []byte) error {
		if len(src) != 4 {
			return broken(name)
		}
		to.UnsafeAppend(int64(binary.BigEndian.Uint32(src)))
		return nil
	}
}

func addFloat4(b array.Builder, name string) appender {
	to := b.(*array.Float32Builder)
	return func(src []byte) error {
		if len(src) != 4 {
			return broken(name)
		}
		to.UnsafeAppend(math.Float32frombits(binary.BigEndian.Uint32(src)))
		return nil
	}
}

func addFloat8(b array.Builder, name string) appender {
	to := b.(*array.Float64Builder)
	return func(src []byte) error {
		if len(src) != 8 {
			return broken(name)
		}
		to.UnsafeAppend(math.Float64frombits(binary.BigEndian.Uint64(src)))
		return nil
	}
}

func addText(b array.Builder, _ string) appender {
	to := b.(*array.StringBuilder)
	return func(src []byte) error {
		to.BinaryBuilder.Append(src)
		return nil
	}
}

// addPadded is for char(n), whose trailing blanks are no part of the value: the cast to text drops them too.
func addPadded(b array.Builder, _ string) appender {
	to := b.(*array.StringBuilder)
	return func(src []byte) error {
		to.BinaryBuilder.Append(bytes.TrimRight(src, " "))
		return nil
	}
}

// addJSONB is for jsonb, whose text comes behind the number of the wire format.
func addJSONB(b array.Builder, name string) appender {
	to := b.(*array.StringBuilder)
	return func(src []byte) error {
		if len(src) < 2 || src[0] != 1 {
			return broken(name)
		}
		to.BinaryBuilder.Append(src[1:])
		return nil
	}
}

func addBytes(b array.Builder, _ string) appender {
	to := b.(*array.BinaryBuilder)
	return func(src []byte) error {
		to.Append(src)
		return nil
	}
}

func addUUID(b array.Builder, name string) appender {
	to := b.(*array.FixedSizeBinaryBuilder)
	return func(src []byte) error {
		if len(src) != 16 {
			return broken(name)
		}
		to.UnsafeAppend(src)
		return nil
	}
}

// addDate keeps infinity as the values that stand for it in every result: the largest number and its negative, which JSON
// shows as infinity and the lake refuses.
func addDate(b array.Builder, name string) appender {
	to := b.(*array.Date32Builder)
	return func(src []byte) error {
		if len(src) != 4 {
			return broken(name)
		}
		switch days := int32(binary.BigEndian.Uint32(src)); days {
		case math.MaxInt32:
			to.UnsafeAppend(math.MaxInt32)
		case math.MinInt32:
			to.UnsafeAppend(-math.MaxInt32)
		default: // up to the year 5,874,897, which fits
			to.UnsafeAppend(arrow.Date32(days + epochDays))
		}
		return nil
	}
}

// addTimestamp is for both timestamps; with a zone they are in UTC on the wire. Infinity is as in addDate. The last years
// that PostgreSQL knows have no room when they are counted from 1970.
func addTimestamp(b array.Builder, name string) appender {
	to := b.(*array.TimestampBuilder)
	return func(src []byte) error {
		if len(src) != 8 {
			return broken(name)
		}
		switch micros := int64(binary.BigEndian.Uint64(src)); {
		case micros == math.MaxInt64:
			to.UnsafeAppend(math.MaxInt64)
		case micros == math.MinInt64:
			to.UnsafeAppend(-math.MaxInt64)
		case micros >= math.MaxInt64-epochMicros:
			return rangeError(name, "a timestamp after the year 294246, which a timestamp in microseconds does not reach", "cast it to text, or leave it out")
		default:
			to.UnsafeAppend(arrow.Timestamp(micros + epochMicros))
		}
		return nil
	}
}

// addTime is for time, up to 24:00:00.
func addTime(b array.Builder, name string) appender {
	to := b.(*array.Time64Builder)
	return func(src []byte) error {
		if len(src) != 8 {
			return broken(name)
		}
		to.UnsafeAppend(arrow.Time64(binary.BigEndian.Uint64(src)))
		return nil
	}
}

// addTimeTZ converts to UTC and loses the offset, which is on the wire in seconds west of it.
func addTimeTZ(b array.Builder, name string) appender {
	to := b.(*array.Time64Builder)
	return func(src []byte) error {
		if len(src) != 12 {
			return broken(name)
		}
		micros := int64(binary.BigEndian.Uint64(src)) + int64(int32(binary.BigEndian.Uint32(src[8:])))*1_000_000
		if micros != dayMicros {
			micros = (micros%dayMicros + dayMicros) % dayMicros
		}
		to.UnsafeAppend(arrow.Time64(micros))
		return nil
	}
}

func addInterval(b array.Builder, name string) appender {
	to := b.(*array.MonthDayNanoIntervalBuilder)
	return func(src []byte) error {
		if len(src) != 16 {
			return broken(name)
		}
		micros := int64(binary.BigEndian.Uint64(src))
		days, months := int32(binary.BigEndian.Uint32(src[8:])), int32(binary.BigEndian.Uint32(src[12:]))
		const hint = "cast it to text, or leave it out"
		if days == months && (days == math.MaxInt32 && micros == math.MaxInt64 || days == math.MinInt32 && micros == math.MinInt64) {
			return rangeError(name, "an infinite interval", hint)
		}
		if micros > math.MaxInt64/1000 || micros < math.MinInt64/1000 {
			return rangeError(name, "an interval of more than 292 years in hours, minutes and seconds", hint)
		}
		to.UnsafeAppend(arrow.MonthDayNanoInterval{Months: months, Days: days, Nanoseconds: micros * 1000})
		return nil
	}
}

func addNumeric(to *array.Decimal128Builder, name string, precision, scale int32, exact bool, hint string) appender {
	return func(src []byte) error {
		v, why := decimal(src, precision, scale, exact)
		switch why {
		case numericFits:
			to.UnsafeAppend(v)
			return nil
		case numericSpecial:
			return rangeError(name, "NaN or an infinite number, which decimals do not have", "cast it to double precision, or leave it out")
		case numericInexact:
			return rangeError(name, "a number with more digits behind the point than the "+digits(scale)+" of its type", hint)
		case numericTooWide:
			return rangeError(name, "a number with more digits before the point than the "+digits(precision-scale)+" of its type", hint)
		}
		return broken(name)
	}
}

func addMoney(b array.Builder, name string) appender {
	to := b.(*array.Decimal128Builder)
	return func(src []byte) error {
		if len(src) != 8 {
			return broken(name)
		}
		to.UnsafeAppend(decimal128.FromI64(int64(binary.BigEndian.Uint64(src))))
		return nil
	}
}

// half reads a float of 16 bits.
func half(src []byte) float32 {
	return float16.FromBits(binary.BigEndian.Uint16(src)).Float32()
}
