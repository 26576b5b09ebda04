package planted

import "testing"

// What is shipped has no tag, and so must have no fault.
func TestNothingIsPlanted(t *testing.T) {
	if Fault != None {
		t.Errorf("this build has a fault: %s", Fault)
	}
}
