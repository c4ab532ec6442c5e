"""From cases (data) to results: library, expansion, execution, results, report."""
