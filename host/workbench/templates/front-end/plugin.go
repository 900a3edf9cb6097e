// Package plugin serves an HTTP API with the parameters `login`, `password`, `to` and `text`, which answers with a line of text;
// policy.txt is an example of its policy document.
package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	translation "wit_component/switchyard_hooks_translation"
	hooks "wit_component/switchyard_hooks_types"
)

// The first word of a response.
var accepted, refused = "OK", "ERROR"

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 2 && words[0] == "accepted":
			accepted = words[1]
		case len(words) == 2 && words[0] == "refused":
			refused = words[1]
		default:
			// The admin sees this error as the reason of the refusal.
			return types.Err[types.Unit](fmt.Sprintf(
				"line %d: expected 'accepted WORD' or 'refused WORD'", index+1))
		}
	}
	return types.Ok[types.Unit, string](types.Unit{})
}

// Read reads a request.
func Read(request hooks.HttpRequest) translation.Reading {
	form := request.Query
	if request.Method == "POST" {
		form = string(request.Body)
	}
	parameters := map[string]string{}
	for _, pair := range strings.Split(form, "&") {
		name, value, found := strings.Cut(pair, "=")
		if _, known := parameters[name]; found && !known {
			parameters[name] = decode(value)
		}
	}
	for _, name := range []string{"login", "password", "to", "text"} {
		if _, found := parameters[name]; !found {
			return translation.MakeReadingRespond(respond(400, refused, name+" is missing"))
		}
	}
	submission := translation.Submission{
		Destination: parameters["to"],
		Content:     translation.MakeContentText(parameters["text"]),
		Coding:      translation.CodingAutomatic,
		Receipts:    translation.WantedReceiptsNone,
	}
	return translation.MakeReadingSubmit(translation.Submit{
		Credentials: translation.Credentials{Account: parameters["login"], Password: parameters["password"]},
		Submissions: []translation.Submission{submission},
	})
}

// A value of application/x-www-form-urlencoded. Octets outside UTF-8 become replacement characters.
func decode(value string) string {
	var octets []byte
	for index := 0; index < len(value); index++ {
		octet := value[index]
		if octet == '+' {
			octet = ' '
		} else if octet == '%' && index+2 < len(value) {
			if number, err := strconv.ParseUint(value[index+1:index+3], 16, 8); err == nil {
				octet = byte(number)
				index += 2
			}
		}
		octets = append(octets, octet)
	}
	return strings.ToValidUTF8(string(octets), "\uFFFD")
}

// Reply writes the response to a request whose submissions have this outcome.
func Reply(_ hooks.HttpRequest, outcome translation.Outcome) hooks.HttpResponse {
	if outcome.Tag() == translation.OutcomeRefused {
		return respondRefused(outcome.Refused())
	}
	// The host gives one result per submission.
	result := outcome.Results()[0]
	if result.Tag() == translation.SubmissionResultAccepted {
		return respond(200, accepted, result.Accepted().Id)
	}
	return respondRefused(result.Refused())
}

func respondRefused(refusal translation.Refusal) hooks.HttpResponse {
	status := uint16(422)
	switch refusal.Reason {
	case translation.RefusalReasonUnauthenticated:
		status = 401
	case translation.RefusalReasonThrottled:
		status = 429
	case translation.RefusalReasonUnavailable:
		status = 503
	case translation.RefusalReasonInternal:
		status = 500
	}
	return respond(status, refused, refusal.Detail)
}

func respond(status uint16, word, detail string) hooks.HttpResponse {
	header := hooks.HttpHeader{Name: "content-type", Value: "text/plain"}
	return hooks.HttpResponse{Status: status, Headers: []hooks.HttpHeader{header}, Body: []byte(word + " " + detail)}
}
