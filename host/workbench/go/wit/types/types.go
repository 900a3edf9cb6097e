// Package types has the types of WIT that Go has no type for.
package types

// Unit is the result of a function that returns nothing but success.
type Unit struct{}

// The tags of an Option.
const (
	OptionNone uint8 = iota
	OptionSome
)

// Option is a value that may be absent.
type Option[T any] struct {
	tag   uint8
	value T
}

// None is an absent value.
func None[T any]() Option[T] {
	return Option[T]{}
}

// Some is a value that is present.
func Some[T any](value T) Option[T] {
	return Option[T]{tag: OptionSome, value: value}
}

// Tag is OptionNone or OptionSome.
func (o Option[T]) Tag() uint8 {
	return o.tag
}

// IsSome tells whether the value is present.
func (o Option[T]) IsSome() bool {
	return o.tag == OptionSome
}

// IsNone tells whether the value is absent.
func (o Option[T]) IsNone() bool {
	return o.tag == OptionNone
}

// Some returns the value. It panics if the value is absent.
func (o Option[T]) Some() T {
	if o.tag != OptionSome {
		panic("the option has no value")
	}
	return o.value
}

// SomeOr returns the value, or the one given if it is absent.
func (o Option[T]) SomeOr(other T) T {
	if o.tag != OptionSome {
		return other
	}
	return o.value
}

// The tags of a Result.
const (
	ResultOk uint8 = iota
	ResultErr
)

// Result is a value or an error.
type Result[T, E any] struct {
	tag   uint8
	value T
	err   E
}

// Ok is the result of a success.
func Ok[T, E any](value T) Result[T, E] {
	return Result[T, E]{tag: ResultOk, value: value}
}

// Err is the result of a failure.
func Err[T, E any](err E) Result[T, E] {
	return Result[T, E]{tag: ResultErr, err: err}
}

// Tag is ResultOk or ResultErr.
func (r Result[T, E]) Tag() uint8 {
	return r.tag
}

// IsOk tells whether the result is a success.
func (r Result[T, E]) IsOk() bool {
	return r.tag == ResultOk
}

// IsErr tells whether the result is a failure.
func (r Result[T, E]) IsErr() bool {
	return r.tag == ResultErr
}

// Ok returns the value. It panics if the result is a failure.
func (r Result[T, E]) Ok() T {
	if r.tag != ResultOk {
		panic("the result is an error")
	}
	return r.value
}

// Err returns the error. It panics if the result is a success.
func (r Result[T, E]) Err() E {
	if r.tag != ResultErr {
		panic("the result is not an error")
	}
	return r.err
}

// Tuple2 is a pair of values.
type Tuple2[A, B any] struct {
	F0 A
	F1 B
}
