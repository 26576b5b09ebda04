// Package live holds the rules of a cluster while they change. What is written
// and spread as one is an entity: a tier, or a client. Each write gives the entity
// a [Version], and the last writer wins, entity by entity. So stores that have
// seen the same entries hold the same rules, whatever the order they came in and
// however often.
//
// The life of one change:
//
//	1  Store.Put      parses the body, compiles the whole, refuses what is wrong
//	2  File.Save      written, if there is a data directory, before it is in force
//	3  Store.Rules    one atomic store: the next check sees it
//	4  Store.Changed  the node tells the others its new Summary
//	5  Store.Since    what another lacks that had these rules a moment ago;
//	   Store.Newer    what it lacks else
//	6  Store.Merge    there: the same as 2 to 4
//
// A deleted entity stays as a tombstone, for a node that was away may still have
// the entity. Clocks play no role.
package live
