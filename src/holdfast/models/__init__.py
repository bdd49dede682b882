"""Who answers: clients for model servers, each of which only translates."""
