// Package plugin finds the network of a number in a table of the appliance; policy.txt is an example of its policy document.
package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	lookup "wit_component/switchyard_hooks_number_lookup"
	tables "wit_component/switchyard_hooks_tables"
	hooks "wit_component/switchyard_hooks_types"
)

var (
	// The appliance's table.
	table uint32
	// How long an answer is valid, in milliseconds.
	valid uint64
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var name string
	readValid := uint64(60_000)
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) == 2 && words[0] == "table" {
			name = words[1]
			continue
		}
		if len(words) == 2 && words[0] == "valid" {
			if seconds, err := strconv.ParseUint(words[1], 10, 32); err == nil {
				readValid = seconds * 1000
				continue
			}
		}
		// The admin sees this error as the reason of the refusal.
		return types.Err[types.Unit](fmt.Sprintf("line %d: expected 'table NAME' or 'valid SECONDS'", index+1))
	}
	if name == "" {
		return types.Err[types.Unit]("there is no line 'table NAME'")
	}
	opened := tables.Open(name)
	if opened.IsErr() {
		return types.Err[types.Unit](opened.Err())
	}
	table, valid = opened.Ok(), readValid
	return types.Ok[types.Unit, string](types.Unit{})
}

func unknown(why string) lookup.LookedUp {
	return lookup.LookedUp{Answer: lookup.MakeAnswerUnknown(valid), Note: types.Some(why)}
}

// LookUp looks up a number.
func LookUp(number lookup.Number) lookup.LookedUp {
	if !number.International {
		return unknown("not an international number")
	}
	found := tables.GetPrefix(table, number.Digits)
	if found.IsNone() {
		return unknown("not in the table")
	}
	mcc, mnc, isPair := strings.Cut(found.Some().Value, "-")
	if !isPair {
		return unknown("the row is not MCC-MNC")
	}
	attributes := []hooks.Attribute{{Name: "mcc", Value: mcc}, {Name: "mnc", Value: mnc}}
	known := lookup.Known{Attributes: attributes, Lifetime: valid}
	return lookup.LookedUp{Answer: lookup.MakeAnswerFound(known)}
}
