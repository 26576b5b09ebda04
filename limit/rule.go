package limit

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// RuleID names the content of a Spec. Two nodes with the same Spec have the
// same RuleID.
type RuleID uint64

// Rule is a Spec, checked and compiled, and what the caller's side does with
// the verdict. It is immutable once made and safe for concurrent use.
type Rule struct {
	Spec
	Name, Tier string // of no tier: it is a client's own
	OnFailure  OnFailure
	Jitter     bool // spread the Retry-After header
	Shadow     bool // count and report, but refuse nothing

	id       RuleID
	capacity int64
	judge    judge
}

// judge is an algorithm compiled with its parameters. A cost that it is given
// is from 1 to the rule's capacity. None of them lets time run back: a now
// before the moment that the state was made counts as that moment.
type judge interface {
	// peek says how take, which each judge has too, would decide. What remains
	// is before the cost.
	peek(s State, now, cost int64) Verdict
	// look is what remains, whatever the cost.
	look(s State, now int64) Verdict
	// refund gives back what was taken age ago, as far as it is used.
	refund(s State, now, cost, age int64) State
	// freshAt is when the state will equal a fresh one.
	freshAt(s State) int64
	// until is how long it takes until no more than room is used. More is used
	// now.
	until(s State, now, room int64) time.Duration
	// carry is s, counted by from, in this judge's terms; both are of one type.
	carry(from judge, s State, now int64) State
	shipper
}

// NewRule checks the Spec and compiles it. The error is a *SpecError. Name,
// Tier, OnFailure, Jitter and Shadow are the caller's to set before it shares the Rule.
func NewRule(spec Spec) (*Rule, error) {
	spec = spec.normal()
	if err := spec.validate(); err != nil {
		return nil, err
	}
	hash := sha256.Sum256(spec.Encode())
	r := &Rule{Spec: spec, id: RuleID(binary.BigEndian.Uint64(hash[:])), capacity: spec.capacity()}
	r.judge = r.compile()
	return r, nil
}

// compile needs a Spec that was checked.
func (r *Rule) compile() judge {
	switch r.Algorithm {
	case FixedWindow:
		return newFixedWindow(r.Spec)
	case SlidingWindowLog:
		return &slidingLog{limit: r.Limit, window: int64(r.Window)}
	case SlidingWindowCounter:
		return &slidingCounter{limit: r.Limit, window: int64(r.Window)}
	}
	return newBucket(r.Spec)
}

// capacity is the most that can be taken at once.
func (s Spec) capacity() int64 {
	switch {
	case s.Limit == 0:
		return 0
	case s.Algorithm == LeakyBucket:
		return 1 + s.Burst
	case s.Algorithm == TokenBucket && s.Burst != 0:
		return s.Burst
	}
	return s.Limit
}

// ID names the content of the rule's Spec: the start of the SHA-256 of its JSON
// form. Names and what to do on failure are not part of it.
func (r *Rule) ID() RuleID { return r.id }

// Capacity is the most that can be taken at once: the burst of a token_bucket,
// one and the queue of a leaky_bucket, else the limit.
func (r *Rule) Capacity() int64 { return r.capacity }

// WindowSeconds is the length of the window that contains now, in whole
// seconds; 0 when it is under one.
func (r *Rule) WindowSeconds(now int64) int64 {
	if f, ok := r.judge.(*fixedWindow); ok && r.Calendar != NoCalendar {
		start, end := f.around(now)
		return (end - start) / int64(time.Second)
	}
	return int64(r.Window / time.Second)
}

// Take charges the counter if the cost fits, and otherwise returns s unchanged.
// A cost above the capacity never fits, and no wait is named for it. A cost
// under 1 is a caller's error; it is refused as well, for it would mint.
func (r *Rule) Take(s State, now, cost int64) (State, Verdict) {
	var v Verdict
	r.Apply(&Charge{Mode: Take, Cost: cost}, &s, &v, now)
	return s, v
}

// Peek says how Take would decide, and takes nothing: what remains is what
// could be taken now.
func (r *Rule) Peek(s State, now, cost int64) (v Verdict) {
	r.Apply(&Charge{Mode: Peek, Cost: cost}, &s, &v, now)
	return v
}

// Refund gives back what an earlier Take charged and the request did not use,
// never more than is used now: a window that has passed since took its charges
// with it. The verdict is always allowed.
func (r *Rule) Refund(s State, now, cost int64) (State, Verdict) {
	var v Verdict
	r.Apply(&Charge{Mode: Refund, Cost: cost}, &s, &v, now)
	return s, v
}

// Apply is Take, Peek or Refund in place, for the hot path: to pass State and
// Verdict by value costs more than to decide. It looks at the charge's Mode, Cost
// and Age; r counts, whatever the charge's rule is.
func (r *Rule) Apply(c *Charge, s *State, v *Verdict, now int64) {
	*v = Verdict{}
	fits := uint64(c.Cost-1) < uint64(r.capacity)
	switch {
	case c.Mode == Refund:
		r.refund(c, s, v, now)
	case !fits:
		*v = r.judge.look(*s, now)
		v.Reason = CostExceedsLimit
	case c.Mode == Peek:
		*v = r.judge.peek(*s, now, c.Cost)
	default:
		r.take(s, v, now, c.Cost)
	}
}

// take tells the judges apart by hand: through an interface the compiler could
// not know that s and v stay on the caller's stack.
func (r *Rule) take(s *State, v *Verdict, now, cost int64) {
	switch j := r.judge.(type) {
	case *bucket:
		j.take(s, v, now, cost)
	case *fixedWindow:
		j.take(s, v, now, cost)
	case *slidingCounter:
		j.take(s, v, now, cost)
	case *slidingLog:
		j.take(s, v, now, cost)
	}
}

func (r *Rule) refund(c *Charge, s *State, v *Verdict, now int64) {
	if c.Cost > 0 {
		*s = r.judge.refund(*s, now, c.Cost, max(0, int64(c.Age)))
	}
	*v = r.judge.look(*s, now)
	v.Allowed = true
}

// FreshAt is the Unix time in nanoseconds from which on s and the zero State
// decide alike, so that s may be dropped.
func (r *Rule) FreshAt(s State) int64 { return r.judge.freshAt(s) }

// Carry is the state that was counted under from, in terms of r. What was used
// stays used, up to what r can express: a bucket cannot be more than empty.
// Another algorithm is another counter and starts fresh.
func (r *Rule) Carry(from *Rule, s State, now int64) State {
	switch {
	case r.id == from.id:
		return s
	case r.Algorithm != from.Algorithm:
		return State{}
	}
	return r.judge.carry(from.judge, s, now)
}

// ApplyCarried is Apply to a counter that is still kept under another rule, from.
// r decides; it reports whether s is r's from now on, which it is only once r has
// admitted something. A smaller rule cannot hold all that was used under a larger
// one. If a refusal carried s over, the larger one would forget, and nodes that
// differ about a rule for a while would admit without end. Until then the counter
// goes on under from, and that is what a wait is reckoned by.
func (r *Rule) ApplyCarried(from *Rule, c *Charge, s *State, v *Verdict, now int64) (carried bool) {
	if c.Mode == Refund {
		from.Apply(c, s, v, now)
		*v = r.judge.look(r.Carry(from, *s, now), now)
		v.Allowed = true
		return false
	}
	next := r.Carry(from, *s, now)
	r.Apply(c, &next, v, now)
	if v.RetryAfter > 0 {
		v.RetryAfter = r.waitUnder(from, *s, now, c.Cost, v.RetryAfter)
	}
	if c.Mode != Take || !v.Allowed {
		return false
	}
	*s = next
	return true
}

// waitUnder is how long a request that r refuses has to wait while s is kept
// under from; own is what it would be under r. A stamp of a log is gone when it
// has expired under either.
func (r *Rule) waitUnder(from *Rule, s State, now, cost int64, own time.Duration) time.Duration {
	if r.Algorithm != from.Algorithm {
		return own
	}
	wait := from.judge.until(s, now, r.capacity-cost)
	if r.Algorithm == SlidingWindowLog {
		return min(wait, own)
	}
	return wait
}

// Share is one of n equal parts of the rule, for a node that has to decide
// alone: together the n admit no more than the rule in any window, but for the
// single unit that each part of a bucket holds at least. When a part of the
// limit is under one, it denies all.
func (r *Rule) Share(n int) *Rule {
	if n <= 1 {
		return r
	}
	spec := r.Spec
	spec.Limit, spec.Burst = r.Limit/int64(n), 0
	if spec.Limit > 0 && (r.Algorithm == TokenBucket || r.Algorithm == LeakyBucket) {
		// In proportion to the limit, so that a part takes no longer to refill.
		part, _ := mulDiv(uint64(r.capacity), uint64(spec.Limit), uint64(r.Limit))
		spec.Burst = max(1, int64(part))
	}
	if r.Algorithm == LeakyBucket && spec.Burst > 0 {
		spec.Burst-- // the one that is served
	}
	share, err := NewRule(spec)
	if err != nil {
		panic("limit: a part of a valid rule is invalid: " + err.Error())
	}
	share.Name, share.Tier, share.OnFailure, share.Jitter, share.Shadow = r.Name, r.Tier, r.OnFailure, r.Jitter, r.Shadow
	return share
}
