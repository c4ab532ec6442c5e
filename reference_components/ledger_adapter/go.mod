module ledger_adapter

go 1.19
