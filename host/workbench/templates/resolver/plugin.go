// Package plugin finds subscribers in a table of the appliance; policy.txt is an example of its policy document.
package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	resolution "wit_component/switchyard_hooks_resolution"
	tables "wit_component/switchyard_hooks_tables"
)

var (
	// The appliance's table.
	table uint32
	// Validity of an answer, in milliseconds.
	valid types.Option[uint64]
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var name string
	var readValid types.Option[uint64]
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
				readValid = types.Some(seconds * 1000)
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

// Resolve finds the subscriber behind a number.
func Resolve(msisdn string) resolution.Resolved {
	value := tables.Get(table, msisdn)
	if value.IsNone() {
		answer := resolution.MakeAnswerUnknown(types.None[uint64]())
		return resolution.Resolved{Answer: answer, Note: types.Some("not in the table")}
	}
	imsi, serving, _ := strings.Cut(value.Some(), ",")
	subscriber := resolution.Subscriber{Imsi: imsi, Valid: valid}
	if serving != "" {
		subscriber.Serving = types.Some(serving)
	}
	return resolution.Resolved{Answer: resolution.MakeAnswerFound(subscriber)}
}
