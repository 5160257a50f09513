// Command shop is the MCP server that the examples work with: a small shop with
// orders, customers, a warehouse that is sometimes closed, and mail.
//
// Like most servers it answers with text that is JSON, where the tool has no
// output schema, and with structured content where it has one. It keeps
// nothing: the same call always gets the same answer, and a mail that it
// "sends" goes nowhere. So the examples print the same every time.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Status   string `json:"status"`
	Placed   string `json:"placed"`
	SKU      string `json:"sku"`
	Cents    int    `json:"cents"`
}

type customer struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

var orders = []order{
	{"1001", "ann", "shipped", "2026-03-02", "mug", 1400},
	{"1002", "bob", "open", "2026-03-03", "lamp", 8900},
	{"1003", "ann", "open", "2026-03-09", "mug", 1400},
	{"1004", "cyd", "shipped", "2026-03-11", "desk", 41900},
	{"1005", "dan", "refunded", "2026-03-11", "lamp", 8900},
	{"1006", "bob", "open", "2026-03-17", "desk", 41900},
	{"1007", "cyd", "shipped", "2026-03-20", "mug", 2800},
}

var customers = []customer{
	{"ann", "Ann Alder", "ann@example.com"},
	{"bob", "Bob Birch", "bob@example.com"},
	{"cyd", "Cyd Cedar", "cyd@example.org"},
	{"dan", "Dan Dogwood", "dan@example.org"},
}

var stock = map[string]int{"mug": 12, "desk": 0}

// page is how many orders list_orders returns at once.
const page = 3

func main() {
	log.SetFlags(0)
	log.SetPrefix("shop: ")
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	yes, no := true, false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	mcp.AddTool(s, &mcp.Tool{Name: "list_orders", Description: "Lists orders, the oldest first, three at a time", Annotations: reads}, listOrders)
	mcp.AddTool(s, &mcp.Tool{Name: "get_order", Description: "Gets one order", Annotations: reads}, getOrder)
	mcp.AddTool(s, &mcp.Tool{Name: "list_customers", Description: "Lists all customers", Annotations: reads}, listCustomers)
	mcp.AddTool(s, &mcp.Tool{Name: "get_stock", Description: "Says how many pieces of an article are in the warehouse", Annotations: reads}, getStock)
	mcp.AddTool(s, &mcp.Tool{Name: "get_label", Description: "Draws the shipping label of an order", Annotations: reads}, getLabel)
	mcp.AddTool(s, &mcp.Tool{Name: "create_note", Description: "Adds a note to an order",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}}, createNote)
	mcp.AddTool(s, &mcp.Tool{Name: "refund_order", Description: "Pays money back to the customer",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no}}, refundOrder)
	mcp.AddTool(s, &mcp.Tool{Name: "send_mail", Description: "Sends a mail",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &yes}}, sendMail)
	return s
}

// text answers with text: as it is, or as the JSON of a value.
func text(v any) *mcp.CallToolResult {
	s, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return failed("%v", err)
		}
		s = string(b)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// failed answers that the tool failed, in words.
func failed(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func find(id string) (order, bool) {
	for _, o := range orders {
		if o.ID == id {
			return o, true
		}
	}
	return order{}, false
}

type listArgs struct {
	Status string `json:"status,omitempty" jsonschema:"open, shipped or refunded; all if it is left out"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of the page before"`
}

func listOrders(_ context.Context, _ *mcp.CallToolRequest, in listArgs) (*mcp.CallToolResult, any, error) {
	type answer struct {
		Orders []order `json:"orders"`
		Next   string  `json:"next,omitempty"`
	}
	a := answer{Orders: []order{}}
	for _, o := range orders {
		if o.ID <= in.Cursor || in.Status != "" && o.Status != in.Status {
			continue
		}
		if len(a.Orders) == page {
			a.Next = a.Orders[page-1].ID
			break
		}
		a.Orders = append(a.Orders, o)
	}
	return text(a), nil, nil
}

type orderArgs struct {
	ID string `json:"id" jsonschema:"the number of the order"`
}

// getOrder has an output schema, so its answer is structured.
func getOrder(_ context.Context, _ *mcp.CallToolRequest, in orderArgs) (*mcp.CallToolResult, order, error) {
	o, ok := find(in.ID)
	if !ok {
		return nil, order{}, fmt.Errorf("there is no order %s", in.ID)
	}
	return nil, o, nil
}

func listCustomers(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return text(customers), nil, nil
}

type stockArgs struct {
	SKU string `json:"sku" jsonschema:"the article"`
}

func getStock(_ context.Context, _ *mcp.CallToolRequest, in stockArgs) (*mcp.CallToolResult, any, error) {
	n, ok := stock[in.SKU]
	if !ok {
		return failed("the warehouse of %s is closed", in.SKU), nil, nil
	}
	return text(fmt.Sprint(n)), nil, nil
}

// getLabel answers with words and a picture: a bar for each digit.
func getLabel(_ context.Context, _ *mcp.CallToolRequest, in orderArgs) (*mcp.CallToolResult, any, error) {
	o, ok := find(in.ID)
	if !ok {
		return failed("there is no order %s", in.ID), nil, nil
	}
	picture := image.NewGray(image.Rect(0, 0, 4*len(o.ID), 10))
	for i, digit := range o.ID {
		for y := range int(digit - '0') {
			picture.SetGray(4*i+1, 9-y, color.Gray{Y: 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: "label of order " + o.ID}, &mcp.ImageContent{Data: b.Bytes(), MIMEType: "image/png"},
	}}, nil, nil
}

type noteArgs struct {
	ID   string `json:"id" jsonschema:"the number of the order"`
	Note string `json:"note"`
}

func createNote(_ context.Context, _ *mcp.CallToolRequest, in noteArgs) (*mcp.CallToolResult, any, error) {
	return text(fmt.Sprintf("order %s has a note of %d words", in.ID, len(strings.Fields(in.Note)))), nil, nil
}

type refundArgs struct {
	ID     string `json:"id" jsonschema:"the number of the order"`
	Cents  int    `json:"cents" jsonschema:"how much, at most what was paid"`
	Reason string `json:"reason,omitempty"`
}

func refundOrder(_ context.Context, _ *mcp.CallToolRequest, in refundArgs) (*mcp.CallToolResult, any, error) {
	if o, ok := find(in.ID); !ok || in.Cents > o.Cents {
		return failed("order %s was not paid with %d cents", in.ID, in.Cents), nil, nil
	}
	return text(fmt.Sprintf("%d cents of order %s were paid back", in.Cents, in.ID)), nil, nil
}

type mailArgs struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

func sendMail(_ context.Context, _ *mcp.CallToolRequest, in mailArgs) (*mcp.CallToolResult, any, error) {
	return text("sent to " + in.To), nil, nil
}
