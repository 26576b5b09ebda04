package rules

// shared are what the entities of a Set have in common, by content: ten thousand
// clients with a few kinds of rules then fit into the processor's caches. Some
// are those of entities that are not there any more.
type shared struct {
	bodies map[string]*entity // of clients
	plans  map[string]*plan
	bytes  int // about: of the bodies that these were compiled from
}

// copied is for the Set that follows s. It leaves out what no entity has any more
// once that may be as much as all entities: by bytes, for one that changes often may
// be larger than a thousand others.
func (sh *shared) copied(s *Set) shared {
	if sh.bytes < 3*s.bytes { // up to twice is what the entities have
		return shared{cloneMap(sh.bodies), cloneMap(sh.plans), sh.bytes}
	}
	c := shared{bodies: map[string]*entity{}, plans: map[string]*plan{}}
	for _, e := range s.entities() {
		c.keep(e)
	}
	return c
}

// entity is the one entity of all clients with e's body, or e itself with the
// plan that others have.
func (sh *shared) entity(e entity) entity {
	if same := sh.bodies[string(e.body)]; same != nil && e.sharable() {
		return *same
	}
	if same := sh.plans[string(e.key())]; same != nil {
		e.plan = same
	}
	sh.keep(e)
	return e
}

func (sh *shared) keep(e entity) {
	if key := string(e.key()); sh.plans[key] == nil {
		sh.plans[key] = e.plan
		sh.bytes += len(e.body)
	}
	if e.sharable() && sh.bodies[string(e.body)] == nil {
		sh.bodies[string(e.body)] = &e
		sh.bytes += len(e.body)
	}
}

// sharable reports whether clients with this body may share the entity. A warning
// says where its entity stands, so one that has some is not shared.
func (e *entity) sharable() bool { return e.client && len(e.warnings) == 0 }
