package principal

import (
	"context"
	"reflect"
	"testing"
)

func TestAContextCarriesItsCaller(t *testing.T) {
	if got := From(context.Background()); !reflect.DeepEqual(got, Principal{}) {
		t.Errorf("without a caller: %+v", got)
	}
	ann := Principal{Name: "ann", Groups: []string{"platform"}}
	ctx := With(context.Background(), ann)
	if got := From(ctx); !reflect.DeepEqual(got, ann) {
		t.Errorf("the caller is %+v, want %+v", got, ann)
	}
	if got := From(With(ctx, Principal{})); got.Name != "" {
		t.Errorf("an inner caller does not replace the outer one: %+v", got)
	}
}
