module example.com/example-go

go 1.25

require (
	go.bytecodealliance.org/pkg v0.0.0
	wit_component v0.0.0
)

// Written by `switchyard plugin build`.
replace (
	go.bytecodealliance.org/pkg => ./bindings/pkg
	wit_component => ./bindings
)
