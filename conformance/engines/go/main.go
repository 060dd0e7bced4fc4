// SPDX-License-Identifier: Apache-2.0
// The engine's side of a driver: iceberg-go, asked by lines of JSON on standard input, each a verb and its arguments.
// Answers each with a line: `told`, or the `error` in the client's own words. What is asked, and which rows, is not known here.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
)

type request struct {
	Levels     []string
	Name       string
	Properties iceberg.Properties
	Schema     struct{ Fields json.RawMessage }
	Day        string
	Rows       json.RawMessage
	Columns    []string
	Snapshot   *int64
	New        string
	Row        int64
	SQL        string
}

func (r *request) identifier(name string) table.Identifier {
	return append(append(table.Identifier{}, r.Levels...), name)
}

type engine struct {
	lake *rest.Catalog
}

func main() {
	var one engine
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		told, err := one.answer(lines.Bytes())
		if err != nil {
			_ = answers.Encode(map[string]any{"error": err.Error()})
		} else {
			_ = answers.Encode(map[string]any{"told": told})
		}
	}
}

func (e *engine) answer(line []byte) (told any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	var asked []json.RawMessage
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	var verb string
	if err := json.Unmarshal(asked[0], &verb); err != nil {
		return nil, err
	}
	var arguments []request
	if err := json.Unmarshal(asked[1], &arguments); err != nil {
		return nil, err
	}
	return e.do(context.Background(), verb, &arguments[0])
}

func (e *engine) do(ctx context.Context, verb string, r *request) (any, error) {
	switch verb {
	case "open":
		return nil, e.open(ctx, r.Properties)
	case "namespace":
		return nil, e.lake.CreateNamespace(ctx, r.Levels, nil)
	case "create":
		return nil, e.create(ctx, r)
	case "rename":
		_, err := e.lake.RenameTable(ctx, r.identifier(r.Name), r.identifier(r.New))
		return nil, err
	case "drop":
		return nil, e.lake.DropTable(ctx, r.identifier(r.Name))
	case "make_view":
		return nil, e.makeView(ctx, r)
	}
	found, err := e.lake.LoadTable(ctx, r.identifier(r.Name))
	if err != nil {
		return nil, err
	}
	switch verb {
	case "append":
		return nil, appended(ctx, found, r.Rows)
	case "read":
		return read(ctx, found, r)
	case "delete":
		_, err = found.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), r.Row), nil)
		return nil, err
	default:
		return nil, evolved(ctx, found, verb)
	}
}

func (e *engine) open(ctx context.Context, properties iceberg.Properties) error {
	loaded, err := catalog.Load(ctx, "lake", properties)
	if err != nil {
		return err
	}
	e.lake = loaded.(*rest.Catalog)
	return nil
}

func (e *engine) create(ctx context.Context, r *request) error {
	schema, err := iceberg.NewSchemaFromJsonFields(0, string(r.Schema.Fields))
	if err != nil {
		return err
	}
	var options []catalog.CreateTableOpt
	if r.Day != "" {
		day := iceberg.AddPartitionFieldByName(r.Day, r.Day+"_day", iceberg.DayTransform{}, schema, nil)
		spec, err := iceberg.NewPartitionSpecOpts(day)
		if err != nil {
			return err
		}
		options = append(options, catalog.WithPartitionSpec(&spec))
	}
	_, err = e.lake.CreateTable(ctx, r.identifier(r.Name), schema, options...)
	return err
}

func (e *engine) makeView(ctx context.Context, r *request) error {
	schema, err := iceberg.NewSchemaFromJsonFields(0, string(r.Schema.Fields))
	if err != nil {
		return err
	}
	version, err := view.NewVersion(1, 0, []view.Representation{view.NewRepresentation(r.SQL, "spark")}, r.Levels)
	if err != nil {
		return err
	}
	_, err = e.lake.CreateView(ctx, r.identifier(r.Name), version, schema)
	return err
}

func appended(ctx context.Context, to *table.Table, rows []byte) error {
	schema, err := table.SchemaToArrowSchema(to.Schema(), nil, true, false)
	if err != nil {
		return err
	}
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, bytes.NewReader(rows))
	if err != nil {
		return err
	}
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	if err != nil {
		return err
	}
	_, err = to.Append(ctx, reader, nil)
	return err
}

func read(ctx context.Context, from *table.Table, r *request) (any, error) {
	options := []table.ScanOption{table.WithSelectedFields(r.Columns...)}
	if r.Snapshot != nil {
		options = append(options, table.WithSnapshotID(*r.Snapshot))
	}
	_, batches, err := from.Scan(options...).ToArrowRecords(ctx)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for batch, err := range batches {
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := array.RecordToJSON(batch, &text); err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(&text)
		decoder.UseNumber()
		for decoder.More() {
			var row map[string]any
			if err := decoder.Decode(&row); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func evolved(ctx context.Context, of *table.Table, verb string) error {
	change := of.NewTransaction()
	columns := change.UpdateSchema(true, false)
	switch verb {
	case "add_column":
		columns = columns.AddColumn([]string{"size"}, iceberg.PrimitiveTypes.Int32, "", false, nil)
	case "rename_column":
		columns = columns.RenameColumn([]string{"city"}, "town")
	case "drop_column":
		columns = columns.DeleteColumn([]string{"city"})
	default:
		return fmt.Errorf("no verb %s", verb)
	}
	if err := columns.Commit(); err != nil {
		return err
	}
	_, err := change.Commit(ctx)
	return err
}
