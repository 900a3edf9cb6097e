// Package plugin charges by the longest prefix of the destination, for each segment; policy.txt is an example of its policy
// document.
package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	billing "wit_component/switchyard_hooks_billing"
	tables "wit_component/switchyard_hooks_tables"
	hooks "wit_component/switchyard_hooks_types"
)

var (
	// The host's table of prefixes; a value is a price in millionths.
	table uint32
	// Accounts that are not charged.
	free []string
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var rows []tables.Row
	var accounts []string
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) == 3 && words[0] == "price" {
			if price, err := strconv.ParseUint(words[2], 10, 32); err == nil {
				rows = append(rows, tables.Row{Key: words[1], Value: uint32(price)})
				continue
			}
		}
		if len(words) == 2 && words[0] == "free" {
			accounts = append(accounts, words[1])
			continue
		}
		// The admin sees this error as the reason of the refusal.
		return types.Err[types.Unit](fmt.Sprintf(
			"line %d: expected 'price PREFIX MILLIONTHS' or 'free ACCOUNT'", index+1))
	}
	defined := tables.DefinePrefixes("prices", rows)
	if defined.IsErr() {
		return types.Err[types.Unit](defined.Err())
	}
	table, free = defined.Ok(), accounts
	return types.Ok[types.Unit, string](types.Unit{})
}

// Price returns the price of a message.
func Price(message hooks.Message, _ types.Option[billing.FirstLeg]) billing.Quote {
	if slices.Contains(free, message.Origin) {
		return billing.Quote{Price: billing.MakeFeeFree()}
	}
	found := tables.MatchDestination(table, 0xFFFFFFFF)
	if found.IsNone() {
		note := types.Some("no price for this destination")
		return billing.Quote{Price: billing.MakeFeeRefuse(), Note: note}
	}
	price := found.Some().Value
	charge := billing.Charge{Account: message.Origin, Amount: uint64(price) * uint64(message.Parts)}
	note := types.Some(fmt.Sprintf("%d at %d", message.Parts, price))
	return billing.Quote{Price: billing.MakeFeeCharge(charge), Note: note}
}

// Settle receives the results of charges that requested it.
func Settle([]billing.Settlement) types.Result[types.Unit, string] {
	return types.Ok[types.Unit, string](types.Unit{})
}
